import type { DumpChoice } from '../api.js'

/** Which databases a script dumps. No name has a line break in it. */
export const choiceEnv = (choice: DumpChoice): Readonly<Record<string, string>> =>
  choice.kind === 'all'
    ? { BUSBAR_CHOICE: 'all' }
    : { BUSBAR_CHOICE: choice.kind, BUSBAR_NAMES: choice.names.join('\n') }

/** `wanted NAME`, for scripts: whether a database is chosen. */
export const wantedFunction = `wanted() {
  case $BUSBAR_CHOICE in
    only) printf '%s\\n' "$BUSBAR_NAMES" | grep -qxF -e "$1" ;;
    except) ! printf '%s\\n' "$BUSBAR_NAMES" | grep -qxF -e "$1" ;;
    *) true ;;
  esac
}`
