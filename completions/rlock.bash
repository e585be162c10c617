# SPDX-License-Identifier: Apache-2.0
# bash completion of rlock and rflock: . <(rlock completion bash)

# bash also splits words at = and :. _rlock_words joins them again, up to the cursor.
_rlock_words() {
  local i rest=$COMP_LINE word
  words=()
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if ((i == 0)) || [[ $rest == [[:blank:]]* || -z $rest ]]; then
      rest=${rest#"${rest%%[![:blank:]]*}"}
      words+=("$word")
    else
      words[-1]+=$word
    fi
    rest=${rest#"$word"}
  done
}

_rlock() {
  local words answer what line typed=${COMP_WORDS[COMP_CWORD]} LC_ALL=C
  _rlock_words
  local rlock=${words[0]/%rflock/rlock}
  local whole=${words[-1]}
  local before=${whole%"$typed"} called=("${words[@]:1}")
  [[ ${words[0]##*/} == rflock ]] && called=(flock "${called[@]}")
  mapfile -t answer < <("$rlock" completion --next -- "${called[@]}" 2>/dev/null)
  what=${answer[0]-}
  COMPREPLY=()
  case $what in
    files)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$typed")
      ;;
    command*)
      if ((${#words[@]} == ${#COMP_WORDS[@]})) && declare -F _command_offset >/dev/null; then
        [[ ${words[0]##*/} == rflock ]] && what="command $((${what#command } - 1))"
        _command_offset $((${what#command } + 1))
      else
        mapfile -t COMPREPLY < <(compgen -c -f -- "$typed")
      fi
      ;;
    *)
      for line in "${answer[@]:1}"; do
        line=${line%%$'\t'*}
        line=${line#"$before"}
        printf -v line %q "$line"
        [[ $line == *[/:]  || $line == *= ]] && compopt -o nospace 2>/dev/null
        COMPREPLY+=("$line")
      done
      ;;
  esac
}

complete -F _rlock rlock rflock
