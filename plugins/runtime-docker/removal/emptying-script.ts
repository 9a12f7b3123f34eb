/**
 * Removes all that is in the folders. There may be more names than one command takes, so `find` hands them on in parts. A path
 * that is too long to be named ends some kinds of `rm`: what is deep down is moved up then, as far down as names reach, until
 * nothing is left.
 */
const script = `command -v rm find > /dev/null || exit 127
has_any() { find . -mindepth 1 -maxdepth 1 | read -r one; }
empty() {
  cd "$1" || return 1
  rounds=0
  until find . -mindepth 1 -maxdepth 1 -exec rm -rf {} + 2> /dev/null && ! has_any; do
    rounds=$((rounds + 1)); [ $rounds -le 5000 ] || return 1
    for depth in 1000 100 10; do
      find . -mindepth $depth -maxdepth $depth -type d -exec sh -c \\
        'for one; do mv "$one" "$(mktemp -d ./up-XXXXXX)/"; done' move {} + 2> /dev/null
    done
  done
}
for folder; do (empty "$folder") || exit 1; done`

/** The program that leaves the folders empty. 127 where the machine lacks what it takes. */
export const emptyingCommand = (folders: readonly string[]): readonly [string, ...string[]] => [
  'sh',
  '-c',
  script,
  'empty',
  ...folders
]
