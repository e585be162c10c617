// SPDX-License-Identifier: Apache-2.0
// Text of servers, keys, labels and files, made safe to print, and lists as text. Pure functions, any thread may call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {

// The size of the character that the text begins with; 0: the bytes are no valid UTF-8 (Unicode 15, table 3-7) or the
// text is empty. No other function defines valid UTF-8.
std::size_t utf8_length(std::string_view text);

// Whether the text begins with a character that rlock does not print as it is, because a reader would see another text:
//   * a control character: C0, DEL, or C1 as UTF-8 (U+0080 to U+009F);
//   * a character that changes the direction of text: U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069;
//   * a character without width: U+200B, U+2060, U+FEFF. The joiners U+200C and U+200D, combining marks and U+00AD are
//     printed, because scripts and emoji need them.
bool begins_with_unprintable(std::string_view text);

// The decimal number that the text begins with; 0: there is none, or it is too large.
std::int64_t leading_number(std::string_view text);

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }  // of ASCII, whatever the locale

// Whether a character of valid UTF-8 begins with this byte; false: the byte continues a character.
constexpr bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U; }

// Writes unprintable characters as \n, \t or \xNN for each byte, bytes that are no valid UTF-8 as \xNN, and doubles a
// backslash, so that the name of a lock cannot move the cursor, forge a log line or look like another name.
std::string printable(std::string_view text);

// Like printable(), but does not double a backslash, because the line may contain printable() text already.
std::string without_controls(std::string_view text);

// The first `most` bytes, or fewer, so that no character is divided.
std::string_view cut_to(std::string_view text, std::size_t most);

// The text; if it has more than `most` bytes, cut_to() with "..." at the end.
std::string shortened(std::string_view text, std::size_t most);

// An unprintable character as JSON writes it: "\\u009b", "\\u202e". It has at most three bytes of UTF-8.
std::string json_escape(std::string_view character);

// A JSON string with its quotes: unprintable characters as \uNNNN, invalid UTF-8 as U+FFFD.
std::string json_text(std::string_view text);

bool is_control(char c);  // C0 or DEL

// Masks secrets in command lines before rlock stores, shows or logs them. Pure functions; any thread may call them.
//
// A secret is the user and password of a URL, and the value of every option or assignment whose name contains
// "password", "passwd", "secret", "token", "api-key" or "apikey", in any case: --x=V, --x V, X=V.

inline constexpr std::string_view masked = "***";

// The text as one word of a POSIX shell: "'it'\''s'".
std::string shell_quoted(std::string_view text);

// As shell_quoted, for people who copy the word, on one line and without control characters: quoted only where a shell needs that.
// A text with unprintable characters or invalid UTF-8 is written as $'two\nlines', which bash, ksh and zsh read. No quote is within
// the quotes.
std::string copied_word(std::string_view text);

// The words of a command as a shell would read them, each secret replaced by `masked`: each as a copied_word, joined by blanks.
// The word after -c is read as a shell reads it. without_controls() makes it printable, because printable() would change its words.
std::string shown_command(std::span<const std::string> words);

// The same for a command line whose word boundaries are lost, and for the text of a script: words end at blanks outside
// quotes. Masking a masked text changes nothing.
std::string without_secrets(std::string_view text);

// Without the spaces, tabs and carriage returns at its ends. A view of `text`.
std::string_view trimmed(std::string_view text);

// The parts of the text between the separators: "a,,b" has "a", "" and "b", and an empty text has one empty part. They are views of
// `text`.
std::vector<std::string_view> split(std::string_view text, char separator);
// The same for parts that end with the separator, as lines do: an empty text has none, and nothing stands behind the last separator.
std::vector<std::string_view> split_ended(std::string_view text, char separator);

// The texts of a range with a separator between them. `text_of`: gives the text of an element.
template <typename Range, typename TextOf = std::identity>
std::string joined(const Range& range, std::string_view separator, TextOf text_of = {})
{
  std::string all;
  for (const auto& each : range) {
    all.append(all.empty() ? std::string_view() : separator).append(text_of(each));
  }
  return all;
}

}  // namespace rlock
