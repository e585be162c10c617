#compdef rlock rflock
# SPDX-License-Identifier: Apache-2.0
# zsh completion of rlock and rflock: in a directory of $fpath as _rlock, or . <(rlock completion zsh) after compinit

_rlock() {
  local -a called answer candidates
  local what line at
  called=("${(@Q)words[2,CURRENT]}")
  [[ ${words[1]:t} == rflock ]] && called=(flock "${called[@]}")
  answer=("${(@f)$(_call_program next "${(q)words[1]/%rflock/rlock}" completion --next -- "${(@q)called}" 2>/dev/null)}")
  what=$answer[1]
  case $what in
    files) _files ;;
    command*)
      at=${what#command }
      [[ ${words[1]:t} == rflock ]] && ((at -= 1))
      shift $((at + 1)) words
      ((CURRENT -= at + 1))
      _normal
      ;;
    *)
      for line in "${(@)answer[2,-1]}"; do
        [[ -n $line ]] || continue
        candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
      done
      _describe rlock candidates
      ;;
  esac
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _rlock "$@"
else
  compdef _rlock rlock rflock
fi
