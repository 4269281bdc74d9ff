// Reports which files an OpenVINO release reads, through its C++ library: the Python of the wheels before 2023 is too old to
// install. Paths come in on standard input; each answer is a line `yes PATH` or `no PATH`, then a tab and the message.
//
// 2021.* is built with -DINFERENCE_ENGINE and linked to libinference_engine.so, 2022.* to libopenvino.so. Only the two calls
// needed are declared here, because the wheels bring no headers.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

#ifdef INFERENCE_ENGINE
namespace InferenceEngine {
// Returned by value: large enough to hold the real one, and never destroyed, because its destructor is not declared.
struct CNNNetwork {
    alignas(16) char storage[1024];
    ~CNNNetwork() {}
};
class Core {
    class Impl;
    std::shared_ptr<Impl> impl;

public:
    explicit Core(const std::string& plugins = {});
    CNNNetwork ReadNetwork(const std::string& model, const std::string& weights) const;
};
}  // namespace InferenceEngine
static void read(InferenceEngine::Core& core, const std::string& xml, const std::string& bin) { core.ReadNetwork(xml, bin); }
using InferenceEngine::Core;
#else
namespace ov {
class Model;
class Core {
    class Impl;
    std::shared_ptr<Impl> impl;

public:
    explicit Core(const std::string& plugins = {});
    std::shared_ptr<Model> read_model(const std::string& model, const std::string& weights) const;
};
}  // namespace ov
static void read(ov::Core& core, const std::string& xml, const std::string& bin) { core.read_model(xml, bin); }
using ov::Core;
#endif

int main() {
    Core core;
    for (std::string path; std::getline(std::cin, path);) {
        std::string weights = path.substr(0, path.size() - 3) + "bin";
        if (!std::ifstream(weights)) weights.clear();
        std::cout << std::flush;
        // Some releases crash on some files: each is read in a process of its own.
        if (fork() == 0) {
            std::string answer = "yes " + path;
            try {
                read(core, path, weights);
            } catch (const std::exception& error) {
                std::string why = error.what();
                std::replace(why.begin(), why.end(), '\n', ' ');
                answer = "no " + path + "\t" + why.substr(0, 400);
            }
            std::cout << answer << std::endl;
            _exit(0);
        }
        int status = 0;
        wait(&status);
        if (!WIFEXITED(status)) std::cout << "no " << path << "\tcrashed" << std::endl;
    }
}
