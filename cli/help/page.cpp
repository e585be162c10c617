// SPDX-License-Identifier: Apache-2.0
#include "cli/help/page.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

namespace rlock::cli {
namespace {

constexpr std::size_t page_width = 78;  // a closing parenthesis and a full stop may follow
constexpr std::size_t section_margin = 2;
constexpr std::size_t list_margin = 8;

std::string without_escapes(std::string_view text)
{
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      ++i;
      out += text[i] == '&' ? "" : std::string(1, text[i]);  // "\&" is nothing, "\-" a hyphen
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<std::string> words_of(const std::string& line)
{
  std::istringstream words(line);
  return {std::istream_iterator<std::string>(words), {}};
}

bool is_closing(std::string_view word) { return word.size() == 1 && word.find_first_of(".,;:)") == 0; }

class PageText {
 public:
  void add(const std::string& line)
  {
    if (line.starts_with(".Ed")) {
      m_is_literal = false;
    } else if (m_is_literal) {
      m_text += std::string(m_margin + section_margin, ' ') + without_escapes(line) + "\n";
    } else if (line.starts_with('.')) {
      add_macro(line.substr(1));
    } else {
      add_words(line);
    }
  }

  std::string take()
  {
    end_paragraph();
    return std::move(m_text);
  }

 private:
  void add_macro(const std::string& line)
  {
    std::istringstream words(line);
    std::string macro;
    words >> macro;
    const std::string rest = line.size() > macro.size() ? line.substr(macro.size() + 1) : "";
    if (macro == "Sh" || macro == "Ss") {
      end_paragraph();
      m_text += "\n" + rest + "\n";
    } else if (macro == "Pp") {
      end_paragraph();
      m_text += "\n";
    } else if (macro == "Bd") {
      end_paragraph();
      m_is_literal = true;
    } else if (macro == "Bl" || macro == "El") {
      end_paragraph();
      m_margin = macro == "Bl" ? list_margin : section_margin;
    } else if (macro == "It") {
      end_paragraph();
      m_margin = section_margin;
      add_inline("No " + rest);
      end_paragraph();
      m_margin = list_margin;
    } else {
      add_inline(line);
    }
  }

  // A line of macros that are called inside a sentence. The closing punctuation stands behind the parenthesis of Pq.
  void add_inline(const std::string& line)
  {
    const std::vector<std::string> words = words_of(line);
    const auto end = std::find_if_not(words.rbegin(), words.rend(), is_closing).base();
    bool is_parenthesis = false;
    bool is_option = false;
    for (auto word = words.begin(); word != end; ++word) {
      if (*word == "Ns") {
        m_is_joined = true;
      } else if (*word == "Pq") {
        m_opening = "(";
        is_parenthesis = true;
      } else if (*word == "Xr" && end - word > 2) {
        add_word(word[1] + "(" + word[2] + ")");
        word += 2;
      } else if (*word == "Fl") {
        is_option = true;
      } else if (!is_macro(*word)) {
        add_word((is_option ? "-" : "") + *word);
        is_option = false;
      }
    }
    if (is_parenthesis) {
      add_word(")");
    }
    std::for_each(end, words.end(), [this](const std::string& word) { add_word(word); });
  }

  static bool is_macro(std::string_view word)
  {
    for (const std::string_view macro : {"Ql", "Li", "Nm", "Ev", "Pa", "Cm", "Ar", "Sy", "Em", "No"}) {
      if (word == macro) {
        return true;
      }
    }
    return false;
  }

  void add_words(const std::string& line)
  {
    for (const std::string& word : words_of(line)) {
      add_word(word);
    }
  }

  void add_word(const std::string& escaped)
  {
    const std::string word = std::exchange(m_opening, "") + without_escapes(escaped);
    if (m_line.empty()) {
      m_line = std::string(m_margin, ' ') + word;
    } else if (m_is_joined || is_closing(word)) {
      m_line += word;
    } else if (m_line.size() + 1 + word.size() > page_width) {
      m_text += m_line + "\n";
      m_line = std::string(m_margin, ' ') + word;
    } else {
      m_line += " " + word;
    }
    m_is_joined = false;
  }

  void end_paragraph()
  {
    m_text += m_line.empty() ? "" : m_line + "\n";
    m_line.clear();
    m_is_joined = false;
  }

  std::string m_text;
  std::string m_line;     // the last one of a paragraph that has not ended
  std::string m_opening;  // of the next word
  std::size_t m_margin = section_margin;
  bool m_is_literal = false;
  bool m_is_joined = false;  // no blank before the next word
};

}  // namespace

std::string text_of_page(std::string_view mdoc)
{
  PageText text;
  std::istringstream lines{std::string(mdoc)};
  bool is_shown = false;
  for (std::string line; std::getline(lines, line) && line != ".Sh SEE ALSO";) {
    is_shown = is_shown || line == ".Sh DESCRIPTION";
    if (is_shown) {
      text.add(line);
    }
  }
  return text.take();
}

}  // namespace rlock::cli
