import { problems } from '../problems.js'

/** Letters, digits, `_` and `-`: what no engine, shell or URL reads as anything else. */
const userShape = /^[A-Za-z_][A-Za-z0-9_-]*$/
/** What none of them takes apart: no quotes, slashes, signs of shells, or characters that nobody sees. */
const nameShape = /^[^\u0000-\u001f\u007f`"'\\/$]+$/
const passwordShape = /^[\u0020-\u007e]+$/

/** What else a server does not take, as the end of a sentence that begins with the field. */
type Fault = (text: string) => string | undefined
const noFault: Fault = () => undefined

export function checkedUser(
  user: string,
  { longest, faultOf = noFault }: { readonly longest: number; readonly faultOf?: Fault }
): string {
  const reason =
    user.length > longest || !userShape.test(user)
      ? `must be letters, digits, _ or -, beginning with a letter, of at most ${longest} characters`
      : faultOf(user)
  if (reason !== undefined) throw problems.invalid({ field: 'credentials.user', reason })
  return user
}

/** Undefined where none is given. */
export function checkedPassword(
  field: 'password' | 'root_password',
  password: string | undefined,
  faultOf: Fault = noFault
): string | undefined {
  if (password === undefined || password === '') return undefined
  const reason =
    password.length > 128 || !passwordShape.test(password)
      ? 'must be of printable ASCII characters, at most 128'
      : faultOf(password)
  if (reason !== undefined) throw problems.invalid({ field: `credentials.${field}`, reason })
  return password
}

export function checkedName(
  name: string | undefined,
  { longest, faultOf = noFault }: { readonly longest: number; readonly faultOf?: Fault }
): string | undefined {
  if (name === undefined || name === '') return undefined
  const reason =
    name.length > longest || !isPlainName(name) || name.trim() !== name
      ? `must have at most ${longest} characters, and no quotes, slashes, backslashes or dollar signs`
      : faultOf(name)
  if (reason !== undefined) throw problems.invalid({ field: 'credentials.database_name', reason })
  return name
}

const isPlainName = (name: string): boolean => nameShape.test(name) && !name.startsWith('-')

/** What it is called, where that can be the name of a database; else as much of it as can. */
export function databaseNameOf(
  name: string,
  longest: number,
  faultOf: Fault = noFault,
  /** In lower case: names that the server keeps for itself, of which a part would mean nothing. */
  own: readonly string[] = []
): string {
  if (own.includes(name.trim().toLowerCase())) return 'app'
  const fits = (text: string): boolean => text.length <= longest && faultOf(text) === undefined
  // Whole characters: half of one is none.
  const characters = [...name.trim()].slice(0, longest)
  for (let bare = characters.join('').trim(); bare !== ''; bare = characters.join('').trim()) {
    if (!isPlainName(bare)) break
    if (fits(bare)) return bare
    characters.pop()
  }
  const plain = name
    .replace(/[^A-Za-z0-9_]+/g, '_')
    .replace(/^_+/, '')
    .slice(0, longest)
  return plain !== '' && fits(plain) ? plain : 'app'
}
