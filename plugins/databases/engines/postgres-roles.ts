import type { DumpGuide, EngineCommand } from '../api.js'
import { rolesMark } from './postgres-dump.js'

/** Of a line, which is not held beyond that: statements that name a role are shorter. */
const longestLine = 16 * 1024
/** Who writes more names into a dump wants something else. */
const mostRoles = 1000
const rowsEnd = '\n\\.\n'
const name = /^(?:"((?:[^"]|"")+)"|([a-z_][a-z0-9_$]*))/i

/**
 * Finds the roles that the statements of a dump name, as it passes: of what `pg_dump` writes, in one line each. It changes nothing, and is
 * wrong where it does no harm: a role that only a function or a row speaks of is nobody's, and is removed again.
 */
export class RoleFinder {
  readonly #roles = new Set<string>()
  /** What has no end yet: of a line, or of rows. */
  #rest = ''
  #isFirst = true
  /** The dump has them itself. */
  #isOver = false
  /** Whether the comment above says that rows follow. */
  #isData = false
  #isInRows = false
  #isTooLong = false

  /** Those that are new. */
  look(piece: Buffer): string[] {
    const before = this.#roles.size
    // Bytes as they are: a name is decoded by itself.
    if (!this.#isOver) this.#read(this.#rest + piece.toString('latin1'))
    return this.#roles.size === before ? [] : [...this.#roles].slice(before)
  }

  #read(text: string): void {
    let at = 0
    while (!this.#isOver) {
      if (this.#isInRows) {
        const end = text.indexOf(rowsEnd, at)
        if (end < 0) {
          this.#rest = text.slice(Math.max(at, text.length - rowsEnd.length + 1))
          return
        }
        this.#isInRows = false
        at = end + rowsEnd.length
      }
      const end = text.indexOf('\n', at)
      if (end < 0) {
        this.#isTooLong ||= text.length - at > longestLine
        this.#rest = this.#isTooLong ? '' : text.slice(at)
        return
      }
      if (!this.#isTooLong && end - at <= longestLine) this.#line(text.slice(at, end))
      this.#isTooLong = false
      // The line break before the first row may be that of the end.
      at = this.#isInRows ? end : end + 1
    }
    this.#rest = ''
  }

  #line(line: string): void {
    if (this.#isFirst && line === rolesMark) this.#isOver = true
    this.#isFirst = false
    // A function may have such a line as well.
    if (line.startsWith('-- Data for Name: ')) this.#isData = true
    else if (line.startsWith('-- Name: ')) this.#isData = false
    if (this.#isData && line.startsWith('COPY ') && line.endsWith(' FROM stdin;')) this.#isInRows = true
    for (const found of rolesOf(line)) if (this.#roles.size < mostRoles) this.#roles.add(found)
  }
}

function rolesOf(line: string): string[] {
  const lower = line.slice(0, 40).toLowerCase()
  if (lower.startsWith('grant ')) return behindLast(line, ' to ')
  if (lower.startsWith('revoke ')) return behindLast(line, ' from ')
  if (lower.startsWith('create policy ')) return behindFirst(line, ' to ')
  if (lower.startsWith('create user mapping for ')) return namesAt(line, 24)
  if (lower.startsWith('set session authorization ')) return namesAt(line, 26)
  if (lower.startsWith('alter default privileges for role '))
    return [...namesAt(line, 34), ...behindLast(line, ' to '), ...behindLast(line, ' from ')]
  if (lower.startsWith('alter role ')) return namesAt(line, 11)
  if (lower.startsWith('alter ')) return behindLast(line, ' owner to ')
  return []
}

const behindLast = (line: string, words: string): string[] => {
  const at = line.toLowerCase().lastIndexOf(words)
  return at < 0 ? [] : namesAt(line, at + words.length)
}

const behindFirst = (line: string, words: string): string[] => {
  const at = line.toLowerCase().indexOf(words)
  return at < 0 ? [] : namesAt(line, at + words.length)
}

/** A list of names; without what is no role, and those that every server has. */
function namesAt(line: string, from: number): string[] {
  const found: string[] = []
  for (let rest = line.slice(from); ; ) {
    const [whole = '', quoted, bare] = name.exec(rest) ?? []
    if (whole === '') return found
    const text = quoted === undefined ? (bare ?? '').toLowerCase() : quoted.replace(/""/g, '"')
    const role = Buffer.from(text, 'latin1').toString('utf8')
    if (!role.startsWith('pg_') && !notRoles.includes(role)) found.push(role)
    if (!rest.startsWith(', ', whole.length)) return found
    rest = rest.slice(whole.length + 2)
  }
}

const notRoles: readonly string[] = [
  'public',
  'none',
  'current_user',
  'session_user',
  'current_role',
  'default'
]

const mark = (how: string): string => `alter role %I set "busbar.restore" = ''${how}''`

/**
 * They are superusers meanwhile, as those are that a dump makes itself: what they could do in their own server is not known. What cannot be
 * the name of a role was none: the restore says so otherwise.
 */
const giveScript = `set -eu
psql -X -q -A -t -f - <<'SQL'
\\set roles \`printf '%s' "$BUSBAR_ROLES"\`
select format('alter role %I superuser; ${mark('lent')}', rolname, rolname)
from pg_roles where rolname = any (string_to_array(:'roles', chr(10))) and not rolsuper
\\gexec
select format('create role %I superuser; ${mark('made')}', name, name)
from unnest(string_to_array(:'roles', chr(10))) as named (name) where name not in (select rolname from pg_roles)
\\gexec
SQL
`

/** What nothing has come to refer to is removed. */
const takeScript = `set -eu
psql -X -q -A -t -f - <<'SQL'
select format('drop role %I', rolname) from pg_roles r
where exists (select from pg_db_role_setting where setrole = r.oid and setdatabase = 0 and 'busbar.restore=made' = any (setconfig))
  and not exists (select from pg_db_role_setting where setrole = r.oid and setdatabase <> 0)
  and not exists (select from pg_shdepend where refclassid = 'pg_authid'::regclass and refobjid = r.oid)
\\gexec
\\set ON_ERROR_STOP 1
select format('alter role %I nosuperuser; alter role %I reset "busbar.restore"', rolname, rolname) from pg_roles r
where exists (
  select from pg_db_role_setting where setrole = r.oid and setdatabase = 0 and setconfig && array['busbar.restore=made', 'busbar.restore=lent']
)
\\gexec
SQL
`

/** For dumps of some databases that were written without their roles. */
export function rolesGuide(env: Readonly<Record<string, string>>): DumpGuide {
  const finder = new RoleFinder()
  let isAny = false
  const script = (text: string, more: Readonly<Record<string, string>>): EngineCommand => ({
    argv: ['sh', '-c', text],
    env: { ...env, ...more }
  })
  return {
    before(piece) {
      const roles = finder.look(piece)
      if (roles.length === 0) return null
      isAny = true
      return script(giveScript, { BUSBAR_ROLES: roles.join('\n') })
    },
    after: () => (isAny ? script(takeScript, {}) : null)
  }
}
