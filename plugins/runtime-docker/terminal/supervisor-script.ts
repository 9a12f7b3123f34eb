/** The variable that everything carries that was started in a terminal; its value is the terminal's id. */
export const markName = 'BUSBAR_TERMINAL'

/**
 * Ends what runs in a terminal. Engines have no way of ending a program that they have started beside a container's own, so
 * this one does it from within. It is a program of any POSIX shell and uses nothing but what that has built in: a container
 * may have a shell and no other program, no room for a further process, or no files left.
 *
 * `$1` is the terminal's id. To the terminal belongs what carries the mark of it, and what is in the session of such a
 * process: one that has become another user, or has written over its environment. Each line that is read names a signal
 * (`0`: none is sent), and how many processes there are is the answer. `KILL` keeps them from making others first, and
 * is repeated until there are none. At the end of its input, which comes when the platform has gone, all are killed.
 */
export const supervisorScript = `
mark=${markName}=$1
trap '' HUP INT QUIT TERM
look() {
  last=
  while IFS= read -r line || [ -n "$line" ]; do
    last=$line
    line=
  done 2>/dev/null < "$1/stat"
  last=\${last##*) }
  state=\${last%% *}
  last=\${last#* }
  last=\${last#* }
  last=\${last#* }
  session=\${last%% *}
}
marked() {
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      *"$mark"*) return 0 ;;
    esac
    line=
  done 2>/dev/null < "$1/environ"
  return 1
}
signal() {
  found=0
  sessions=:
  for directory in /proc/[0-9]*; do
    if marked "$directory"; then
      look "$directory"
      sessions=$sessions$session:
    fi
  done
  for directory in /proc/[0-9]*; do
    process=\${directory#/proc/}
    look "$directory"
    case $process:$state in
      1:* | $$:* | *:Z | *:X | *:) continue ;;
    esac
    case $sessions in
      *:$session:*) ;;
      *) continue ;;
    esac
    if kill -s "$1" "$process" 2>/dev/null; then found=$((found + 1)); fi
  done
}
finish() {
  before=-1
  rounds=0
  signal STOP
  while [ $found -ne $before ] && [ $rounds -lt 20 ]; do
    before=$found
    rounds=$((rounds + 1))
    signal STOP
  done
  rounds=0
  while [ $found -gt 0 ] && [ $rounds -lt 50 ]; do
    rounds=$((rounds + 1))
    signal KILL
  done
}
echo ready
while IFS= read -r word; do
  case $word in
    KILL) finish ;;
    *) signal "$word" ;;
  esac
  echo $found
done
signal HUP
finish
`
