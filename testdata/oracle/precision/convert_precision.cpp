// Runs OpenVINO's internal pass ConvertPrecision: a line `MODEL TAB OUT TAB FROM=TO[,FROM=TO] TAB FLAGS` of the input each, a line
// `OK TAB OUT` or `ERROR TAB OUT TAB MESSAGE` of the output. FLAGS: `o` leaves inputs and outputs, `k` keeps what is sensitive.
// The library exports the pass, and no header declares it: the declaration below has the members of 2026.4.1.
#include <functional>
#include <iostream>
#include <openvino/openvino.hpp>
#include <openvino/pass/manager.hpp>
#include <sstream>
#include <unordered_map>

struct EnumClassHash {
    template <class T>
    std::size_t operator()(T t) const {
        return static_cast<size_t>(t);
    }
};
using precisions_map = std::unordered_map<ov::element::Type_t, ov::element::Type, EnumClassHash>;
using type_to_fuse_map =
    std::unordered_map<ov::NodeTypeInfo, std::function<bool(const std::shared_ptr<ov::Node>&, const precisions_map&)>>;

namespace ov::pass {
class OPENVINO_API ConvertPrecision : public ModelPass {
public:
    OPENVINO_MODEL_PASS_RTTI("ConvertPrecision");
    ConvertPrecision(const precisions_map& precisions, bool keep, bool interface)
        : m_precisions(precisions),
          m_keep_precision_sensitive_in_fp32(keep),
          m_convert_input_output_precision(interface) {}
    bool run_on_model(const std::shared_ptr<ov::Model>& m) override;

private:
    precisions_map m_precisions;
    type_to_fuse_map m_additional_type_to_fuse_map;
    bool m_keep_precision_sensitive_in_fp32;
    bool m_convert_input_output_precision;
    bool m_store_original_precision_as_rt_attribute = false;
};
}  // namespace ov::pass

static std::string flat(std::string text) {
    for (auto& c : text)
        if (c == '\n' || c == '\t')
            c = ' ';
    return text;
}

int main() {
    ov::Core core;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream fields(line);
        std::string in, out, map, flags;
        std::getline(fields, in, '\t');
        std::getline(fields, out, '\t');
        std::getline(fields, map, '\t');
        std::getline(fields, flags, '\t');
        try {
            precisions_map precisions;
            std::istringstream pairs(map);
            for (std::string pair; std::getline(pairs, pair, ',');) {
                auto at = pair.find('=');
                precisions[ov::element::Type(pair.substr(0, at))] = ov::element::Type(pair.substr(at + 1));
            }
            auto has = [&](char flag) { return flags.find(flag) != std::string::npos; };
            auto model = core.read_model(in);
            ov::pass::Manager manager;
            manager.register_pass<ov::pass::ConvertPrecision>(precisions, has('k'), !has('o'));
            manager.run_passes(model);
            ov::serialize(model, out);
            std::cout << "OK\t" << out << std::endl;
        } catch (const std::exception& error) {
            std::cout << "ERROR\t" << out << "\t" << flat(error.what()) << std::endl;
        }
    }
}
