// What OpenVINO takes for the phases of a conversion: `phases MODEL.xml RUNS` prints their medians and the first conversion in
// milliseconds, and the peak memory of the process in megabytes, as one JSON object.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <openvino/openvino.hpp>
#include <openvino/pass/manager.hpp>
#include <openvino/pass/matcher_pass.hpp>
#include <openvino/pass/serialize.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace ov::pass {
// The library has it and the headers of the wheel do not.
struct ConvertConvertPromoteTypes : MatcherPass {
    OPENVINO_MATCHER_PASS_RTTI("ConvertConvertPromoteTypes");
    ConvertConvertPromoteTypes();
};
}  // namespace ov::pass

// Takes weights and keeps only how many bytes they were: the Rust side writes none.
class Discard : public std::streambuf {
    std::streamoff count = 0;

    int_type overflow(int_type byte) override {
        count++;
        return traits_type::not_eof(byte);
    }
    std::streamsize xsputn(const char*, std::streamsize size) override {
        count += size;
        return size;
    }
    pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override { return count; }
};

static void lower(const std::shared_ptr<ov::Model>& model) {
    ov::pass::Manager manager;
    manager.set_per_pass_validation(false);
    manager.register_pass<ov::pass::ConvertConvertPromoteTypes>();
    manager.run_passes(model);
}

static void write(const std::shared_ptr<ov::Model>& model, std::ostream& xml) {
    Discard nowhere;
    std::ostream weights(&nowhere);
    ov::pass::Serialize(xml, weights).run_on_model(model);
}

int main(int argc, char** argv) try {
    if (argc != 3) {
        std::cerr << "usage: phases MODEL.xml RUNS\n";
        return 2;
    }
    std::map<std::string, std::vector<double>> times;
    const auto timed = [&times](const char* phase, auto&& work) {
        const auto begin = std::chrono::steady_clock::now();
        work();
        const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
        times[phase].push_back(taken.count());
    };
    ov::Core core;
    for (int run = std::atoi(argv[2]); run > 0; run--) {
        std::shared_ptr<ov::Model> model;
        timed("read", [&] { model = core.read_model(argv[1]); });
        timed("infer", [&] { model->validate_nodes_and_infer_types(); });
        timed("lower", [&] { lower(model); });
        timed("write", [&] {
            std::ostringstream xml;
            write(model, xml);
        });
        // Reading infers already.
        times["conversion"].push_back(times["read"].back() + times["lower"].back() + times["write"].back());
    }
    std::cout << "{\"first conversion\":" << times["conversion"].front() << ',';
    for (auto& [phase, taken] : times) {
        std::nth_element(taken.begin(), taken.begin() + taken.size() / 2, taken.end());
        std::cout << '"' << phase << "\":" << taken[taken.size() / 2] << ',';
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::cout << "\"peak memory\":" << usage.ru_maxrss / 1e3 << "}\n";
} catch (const std::exception& refusal) {
    std::cerr << argv[1] << ": " << refusal.what() << '\n';
    return 1;
}
