"""Runs models on OpenVINO for typelift: the program starts it as a process, the Python package imports it."""

import difflib
import json
import os
import queue
import signal
import stat
import struct
import sys
import threading


def _openvino():
    import openvino

    return openvino


class Unknown(RuntimeError):
    """A device, a property or a value that does not exist, with what to write instead."""

    def __init__(self, reason, help):
        super().__init__(reason)
        self.help = help


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

    def load(self, key, text, weights, device, config, defaults, needs_extension):
        """Reads a model from its text and weights (a path or bytes) and compiles it. Returns its properties.

        Properties in defaults are set if the device knows them.
        """
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
        try:
            known = self._properties(device)
            asked = {**{name: value for name, value in defaults.items() if name in known}, **config}
            compiled = self.core.compile_model(model, device, asked)
        except RuntimeError as error:
            raise (self._unknown(device, config) or _near_value(str(error), config) or error) from None
        config = asked
        # The weights stay in memory as long as the compiled model.
        self.compiled[key] = (compiled, compiled.create_infer_request(), holder, data)
        return _answers(compiled, ["INFERENCE_PRECISION_HINT", *defaults, *config, "INFERENCE_NUM_THREADS"])

    def _properties(self, device):
        """Returns the names of the properties of a device. Those of AUTO:CPU are those of CPU."""
        names = [name for part in device.split(":")[1:] for name in part.split(",")]
        if not names and device in ("AUTO", "MULTI", "HETERO"):
            names = self.core.available_devices
        return {name for part in names or [device] for name in self.core.get_property(part, "SUPPORTED_PROPERTIES")}

    def _unknown(self, device, config):
        """Returns the error for a name of a device or a property that does not exist; None if all do."""
        devices = self.core.available_devices
        parts = [part for part in device.replace(":", ",").split(",") if part not in ("AUTO", "MULTI", "HETERO", "BATCH")]
        for part in parts:
            if part.split(".")[0] not in [known.split(".")[0] for known in devices]:
                return Unknown(f"it finds no device `{part}`", f"{_near(part, devices, 0.8)}the devices here are {', '.join(devices)}")
        try:
            known = self._properties(device)
        except RuntimeError:
            return None
        for name in config:
            if name not in known:
                names = _near(name, known).rstrip() or f"its properties are {', '.join(sorted(known))}"
                return Unknown(f"{device} has no property `{name}`", names)
        return None

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

    def arrays(self, path, most):
        """Reads the arrays of an .npz file, or of a folder of .npy files, with their names. They have at most so many bytes."""
        import numpy

        if os.path.isdir(path):
            files = sorted(name for name in os.listdir(path) if name.endswith(".npy"))
            files = [(name[:-4], os.path.join(path, name)) for name in files]
        else:
            files = [("", path)]
        found, left = {}, most
        for name, file in files:
            if not stat.S_ISREG(os.stat(file).st_mode):
                raise ValueError(f"{file}: it is not a regular file")
            left -= _size(file)
            if left < 0:
                raise ValueError(f"{path}: its arrays need more memory than the limit of {most} bytes")
            loaded = numpy.load(file)
            found.update(dict(loaded) if hasattr(loaded, "files") else {name: loaded})
        return [(name, *_value(_openvino().Tensor(numpy.asarray(data, order="C")))) for name, data in found.items()]

    def drop(self, key):
        """Releases a compiled model."""
        self.compiled.pop(key, None)
        return {}


def _near(name, names, likeness=0.6):
    """Returns a suggestion of the name that is most like another; empty if none is."""
    found = difflib.get_close_matches(name.upper(), names, 1, likeness) or [known for known in names if name.upper() in known]
    return f"did you mean `{found[0]}`? " if found else ""


def _near_value(text, config):
    """Returns the error for a wrong value of a property, with a value to write; None for other messages."""
    text, _, listed = text.partition("Supported values: ")
    values = [value.strip() for value in listed.splitlines()[0].split(",")] if listed else []
    asked = [value for value in config.values() if f" {value} " in text]
    near = difflib.get_close_matches(asked[0].lower(), values, 1) if asked else []
    return Unknown(f"{text}Supported values: {', '.join(values)}", f"write one of them, such as {(near or values)[0]}") if values else None


def _size(path):
    """Returns the bytes of the arrays of a file, before any of them is in memory. Numbers in the file are not trusted."""
    import zipfile

    sizes = []
    with open(path, "rb") as stream:
        start = stream.read(8)
    is_archive = start[:2] == b"PK"
    if not is_archive and not start.startswith(b"\x93NUMPY"):
        raise _foreign(start, path)
    if is_archive:
        if not zipfile.is_zipfile(path):
            raise Unknown(f"{path}: the file is cut off", "get a fresh copy of it")
        with zipfile.ZipFile(path) as archive:
            if any(not name.endswith(".npy") for name in archive.namelist()):
                raise _foreign(b"\x80", path)
            for member in archive.infolist():
                with archive.open(member) as stream:
                    sizes.append(_described(stream, member.file_size, f"{path}: {member.filename}"))
    else:
        with open(path, "rb") as stream:
            sizes.append(_described(stream, os.path.getsize(path), path))
    return sum(sizes)


def _foreign(start, path):
    """Returns the error for a file that begins with these bytes and is neither an .npz nor an .npy file."""
    if start.startswith(b"version "):
        return Unknown(f"{path} is a Git LFS pointer, not the arrays", "run `git lfs pull` in its repository to fetch the file")
    if start[:1] == b"\x80":
        return Unknown(f"{path} is a PyTorch file or a pickle", "load it in Python, and write its tensors with `numpy.savez`")
    if start[6:8] == b"\0\0":
        return Unknown(f"{path} is a safetensors file", "load it with `safetensors.numpy.load_file`, and write its tensors with `numpy.savez`")
    return Unknown(f"{path} is neither an .npz nor an .npy file", "load it in Python, and write the arrays that the model takes with `numpy.savez(\"inputs.npz\", NAME=array)`")


def _described(stream, size, name):
    """Returns the bytes of the array whose header a stream begins with. The stream has size bytes."""
    from numpy.lib import format

    version = format.read_magic(stream)
    read = format.read_array_header_1_0 if version == (1, 0) else format.read_array_header_2_0
    shape, _, dtype = read(stream)
    count = dtype.itemsize
    for dim in shape:
        count *= dim
    if count > size:
        raise Unknown(f"{name}: the file is cut off: it has fewer values than its shape {shape}", "get a fresh copy of it")
    return count


def _answers(compiled, names):
    """Returns the values of properties as a compiled model reports them, or as the devices below it do."""
    try:
        inner = list(compiled.get_property("DEVICE_PROPERTIES").values())
    except Exception:
        inner = []
    answers = {}
    for name in names:
        try:
            values = [compiled.get_property(name)]
        except Exception:
            values = [device[name] for device in inner if name in device]
        if values:
            answers[name] = ",".join(sorted({_text(value) for value in values}))
    return answers


def _text(value):
    """Returns the value of a property as a text of the command line: a type, an enumeration or a number."""
    if isinstance(value, _openvino().Type):
        return value.to_string()
    return str(getattr(value, "name", value))


def _pack(names, tensors):
    """Returns the bytes of an .npz file."""
    import io
    import zipfile

    import numpy

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, tensor in zip(names, tensors):
            with archive.open(name + ".npy", "w") as entry:
                data = tensor.str_data if tensor.element_type.to_string() == "string" else tensor.data
                numpy.lib.format.write_array(entry, numpy.asarray(data, order="C"), allow_pickle=False)
    return packed.getvalue()


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
        weights = os.fsdecode(bytes(blobs[1])) if head["is_path"] else blobs[1]
        loaded = runner.load(head["key"], blobs[0], weights, head["device"], head["config"], head["defaults"], head["extension"])
        return {"config": loaded}, []
    if head["do"] == "drop":
        return runner.drop(head["key"]), []
    if head["do"] == "arrays":
        arrays = runner.arrays(os.fsdecode(bytes(blobs[0])), head["most"])
        described = [{"name": name, "type": kind, "shape": shape} for name, kind, shape, _ in arrays]
        return {"outputs": described}, [data for _, _, _, data in arrays]
    inputs = [(value["type"], value["shape"], data) for value, data in zip(head["inputs"], blobs)]
    if head["do"] == "pack":
        return {}, [_pack(head["names"], [_tensor(*value) for value in inputs])]
    outputs = runner.run(head["key"], inputs, head["first"])
    described = [{"type": name, "shape": shape} for name, shape, _ in outputs]
    return {"outputs": described}, [data for _, _, data in outputs]


def _read(stream, size):
    data = bytearray(size)
    view = memoryview(data)
    while len(view):
        count = stream.readinto(view)
        if not count:
            raise EOFError
        view = view[count:]
    return data


def _requests(stream, requests):
    """Reads requests until the program ends, and then ends this process with all that it started, whatever it does."""
    try:
        while True:
            head = json.loads(_read(stream, struct.unpack("<Q", _read(stream, 8))[0]))
            requests.put((head, [_read(stream, size) for size in head.get("blobs", [])]))
    except BaseException:
        pass
    finally:
        if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os._exit(0)


def main():
    """Answers requests until standard input ends. A message is two lengths, JSON, and the bytes of its blobs."""
    # Without a buffer, and not as sys.stdin: a fork would wait for the lock of a stream that is being read.
    stream = os.fdopen(os.dup(0), "rb", buffering=0)
    replies = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    # Output that libraries print must not get between the replies.
    os.dup2(2, 1)
    # Ctrl-C is for the program, which ends this process when it is ready.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # OpenVINO sends no telemetry if this module cannot be imported.
    sys.modules["openvino_telemetry"] = None
    runner, requests = None, queue.Queue()
    threading.Thread(target=_requests, args=(stream, requests), daemon=True).start()
    while True:
        head, blobs = requests.get()
        try:
            if runner is None:
                runner = Runner()
            reply, data = answer(runner, head, blobs)
        except ImportError as error:
            reply, data = {"missing": f"{type(error).__name__}: {error}"}, []
        except Exception as error:
            reply, data = {"error": str(error) or type(error).__name__, "help": getattr(error, "help", None)}, []
        text = json.dumps({**reply, "blobs": [len(part) for part in data]}, ensure_ascii=False).encode(errors="replace")
        replies.write(struct.pack("<Q", len(text)) + text)
        for part in data:
            replies.write(part)
        replies.flush()


if __name__ == "__main__":
    main()
