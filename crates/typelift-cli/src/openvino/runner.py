"""Runs models on OpenVINO for typelift: the program starts it as a process, the Python package imports it."""

import json
import os
import signal
import struct
import sys


def _openvino():
    import openvino

    return openvino


class Runner:
    """Compiled models by number, and the requests that run them."""

    def __init__(self):
        self.core = _openvino().Core()
        self.compiled = {}
        self.has_tokenizers = False
        # Reason why the extension of tokenizers is missing.
        self.missing = None

    def describe(self, device):
        """Returns the version of OpenVINO and the full name of a device."""
        names = {"version": _openvino().get_version().split("-")[0], "devices": list(self.core.available_devices)}
        try:
            names["device"] = str(self.core.get_property(device, "FULL_DEVICE_NAME"))
        except RuntimeError:
            names["device"] = None
        return names

    def load(self, key, text, weights, device, config, needs_extension):
        """Reads a model from its text and weights (a path or bytes) and compiles it."""
        import numpy

        if needs_extension and not self.has_tokenizers:
            try:
                import openvino_tokenizers

                self.core.add_extension(str(openvino_tokenizers._ext_path))
            except Exception as error:
                self.missing = f"the model needs `pip install openvino-tokenizers` ({error})"
            self.has_tokenizers = True
        tensor = _openvino().Tensor
        if isinstance(weights, str):
            size = os.path.getsize(weights)
            data = numpy.memmap(weights, dtype=numpy.uint8, mode="c") if size else numpy.zeros(0, numpy.uint8)
        else:
            data = numpy.frombuffer(weights or b"", dtype=numpy.uint8).copy()
        holder = tensor(data, shared_memory=True) if data.size else tensor(_openvino().Type.u8, [0])
        try:
            model = self.core.read_model(text.decode("utf-8"), holder)
        except RuntimeError as error:
            if needs_extension and self.missing:
                raise RuntimeError(f"{self.missing}\n{error}") from error
            raise
        compiled = self.core.compile_model(model, device, config)
        # The weights stay in memory as long as the compiled model.
        self.compiled[key] = (compiled, compiled.create_infer_request(), holder, data)
        return {"outputs": len(compiled.outputs)}

    def run(self, key, inputs, is_first):
        """Runs a compiled model on (type, shape, bytes) and returns the outputs in the same form."""
        compiled, request, _, _ = self.compiled[key]
        if is_first:
            request.reset_state()
        tensors = [_tensor(*value) for value in inputs]
        for port, tensor in zip(compiled.inputs, tensors):
            request.set_tensor(port, tensor)
        request.infer()
        return [_value(request.get_tensor(port)) for port in compiled.outputs]

    def arrays(self, path):
        """Reads the arrays of an .npz file, or of a folder of .npy files, with their names."""
        import numpy

        if os.path.isdir(path):
            files = sorted(name for name in os.listdir(path) if name.endswith(".npy"))
            found = {name[:-4]: numpy.load(os.path.join(path, name)) for name in files}
        else:
            loaded = numpy.load(path)
            found = dict(loaded) if hasattr(loaded, "files") else {"": loaded}
        return [(name, *_value(_openvino().Tensor(numpy.ascontiguousarray(data)))) for name, data in found.items()]

    def drop(self, key):
        """Releases a compiled model."""
        self.compiled.pop(key, None)
        return {}


def _tensor(element_type, shape, data):
    import numpy

    openvino = _openvino()
    if element_type == "string":
        texts = []
        while data:
            size = struct.unpack_from("<I", data)[0]
            texts.append(bytes(data[4 : 4 + size]).decode("utf-8", "replace"))
            data = data[4 + size :]
        return openvino.Tensor(numpy.array(texts, dtype=str).reshape(shape))
    tensor = openvino.Tensor(getattr(openvino.Type, element_type), openvino.Shape(shape))
    if data:
        tensor.data.reshape(-1).view(numpy.uint8)[:] = numpy.frombuffer(data, dtype=numpy.uint8)
    return tensor


def _value(tensor):
    import numpy

    name = tensor.element_type.to_string()
    shape = [int(dim) for dim in tensor.shape]
    if name == "string":
        texts = [bytes(text) for text in tensor.bytes_data.reshape(-1)]
        return name, shape, b"".join(struct.pack("<I", len(text)) + text for text in texts)
    return name, shape, numpy.ascontiguousarray(tensor.data).tobytes()


def answer(runner, head, blobs):
    """Answers a request of the program: a name with arguments, and the bytes that belong to it."""
    if head["do"] == "hello":
        return {}, []
    if head["do"] == "describe":
        return runner.describe(head["device"]), []
    if head["do"] == "load":
        weights = head["weights"] if head["weights"] is not None else blobs[1]
        return runner.load(head["key"], blobs[0], weights, head["device"], head["config"], head["extension"]), []
    if head["do"] == "drop":
        return runner.drop(head["key"]), []
    if head["do"] == "arrays":
        arrays = runner.arrays(head["path"])
        described = [{"name": name, "type": kind, "shape": shape} for name, kind, shape, _ in arrays]
        return {"outputs": described}, [data for _, _, _, data in arrays]
    inputs = [(value["type"], value["shape"], data) for value, data in zip(head["inputs"], blobs)]
    outputs = runner.run(head["key"], inputs, head["first"])
    described = [{"type": name, "shape": shape} for name, shape, _ in outputs]
    return {"outputs": described}, [data for _, _, data in outputs]


def _read(stream, size):
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def main():
    """Answers requests until standard input ends. A message is two lengths, JSON, and the bytes of its blobs."""
    replies = os.fdopen(os.dup(1), "wb")
    # Output that libraries print must not get between the replies.
    os.dup2(2, 1)
    # Ctrl-C is for the program, which ends this process when it is ready.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    runner, requests = None, sys.stdin.buffer
    while True:
        try:
            count = struct.unpack("<Q", _read(requests, 8))[0]
            head = json.loads(_read(requests, count))
            blobs = [_read(requests, size) for size in head.get("blobs", [])]
        except EOFError:
            return
        try:
            if runner is None:
                runner = Runner()
            reply, data = answer(runner, head, blobs)
        except ImportError as error:
            reply, data = {"missing": f"{type(error).__name__}: {error}"}, []
        except Exception as error:
            reply, data = {"error": str(error) or type(error).__name__}, []
        text = json.dumps({**reply, "blobs": [len(part) for part in data]}).encode()
        replies.write(struct.pack("<Q", len(text)) + text)
        for part in data:
            replies.write(part)
        replies.flush()


if __name__ == "__main__":
    main()
