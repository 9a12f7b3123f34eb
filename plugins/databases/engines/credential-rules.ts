import { problems } from '../problems.js'

/** Letters, digits, `_` and `-`: what no engine, shell or URL reads as anything else. */
const userShape = /^[A-Za-z_][A-Za-z0-9_-]*$/
/** What none of them takes apart: no quotes, slashes, signs of shells, or characters that nobody sees. */
const nameShape = /^[^\u0000-\u001f\u007f`"'\\/$]+$/
const passwordShape = /^[\u0020-\u007e]+$/

export function checkedUser(user: string, { longest }: { readonly longest: number }): string {
  if (user.length > longest || !userShape.test(user))
    throw problems.invalid({
      field: 'credentials.user',
      reason: `must be letters, digits, _ or -, beginning with a letter, of at most ${longest} characters`
    })
  return user
}

/** Undefined where none is given. */
export function checkedPassword(
  field: 'password' | 'root_password',
  password: string | undefined
): string | undefined {
  if (password === undefined || password === '') return undefined
  if (password.length > 128 || !passwordShape.test(password))
    throw problems.invalid({
      field: `credentials.${field}`,
      reason: 'must be of printable ASCII characters, at most 128'
    })
  return password
}

export function checkedName(
  name: string | undefined,
  { longest }: { readonly longest: number }
): string | undefined {
  if (name === undefined || name === '') return undefined
  if (name.length > longest || !nameShape.test(name) || name.startsWith('-') || name.trim() !== name)
    throw problems.invalid({
      field: 'credentials.database_name',
      reason: `must have at most ${longest} characters, and no quotes, slashes, backslashes or dollar signs`
    })
  return name
}

/** What it is called, where that can be the name of a database; else as much of it as can. */
export function databaseNameOf(name: string, longest: number): string {
  const bare = name.trim().slice(0, longest).trim()
  if (nameShape.test(bare) && !bare.startsWith('-')) return bare
  return (
    name
      .replace(/[^A-Za-z0-9_]+/g, '_')
      .replace(/^_+/, '')
      .slice(0, longest) || 'app'
  )
}
