// Asks OpenVINO every question of dims.tsv anew: dims < dims.tsv > new.tsv
//
// Build with the headers and the library of the Python wheel, OV being the folder of the package `openvino`:
//   g++ -std=c++17 dims.cpp -I$OV/include -L$OV/libs -l:$(basename $OV/libs/libopenvino.so.*) -Wl,-rpath,$OV/libs -o dims
//
// A dimension is written with both ends: `2..5`, `2..` without upper end, `empty`. The question is `a b` for two
// dimensions, and `a /n` for a division.
#include <iostream>
#include <openvino/openvino.hpp>
#include <sstream>

static ov::Dimension read(const std::string& text) {
    return text == "empty" ? ov::Dimension(1, 0) : ov::Dimension(std::string_view(text));
}

static std::string show(const ov::Dimension& dim) {
    const auto& ends = dim.get_interval();
    if (ends.empty())
        return "empty";
    return std::to_string(ends.get_min_val()) + ".." + (ends.has_upper_bound() ? std::to_string(ends.get_max_val()) : "");
}

int main() {
    std::string line, left, right;
    std::getline(std::cin, line);
    std::cout << "# OpenVINO " << ov::get_openvino_version().buildNumber << "\n";
    std::getline(std::cin, line);
    std::cout << line << "\n";
    while (std::getline(std::cin, line)) {
        std::istringstream(line) >> left >> right;
        std::cout << left << "\t" << right;
        const auto a = read(left);
        if (right[0] == '/') {
            std::cout << "\t" << show(a / std::stoll(right.substr(1))) << "\n";
            continue;
        }
        const auto b = read(right);
        ov::Dimension merged, broadcast;
        const bool merges = ov::Dimension::merge(merged, a, b);
        const bool broadcasts = ov::Dimension::broadcast_merge(broadcast, a, b);
        for (const auto& answer : {a + b, a - b, a * b})
            std::cout << "\t" << show(answer);
        std::cout << "\t" << (merges ? show(merged) : "!") << "\t" << (broadcasts ? show(broadcast) : "!");
        for (bool answer : {a.compatible(b), a.relaxes(b), a.refines(b), a == b})
            std::cout << "\t" << (answer ? "yes" : "no");
        std::cout << "\n";
    }
}
