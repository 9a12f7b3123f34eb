import { problems } from './problems.js'
import { mostValueBytes, type VariableInput } from './schemas.js'

/** A stored variable; `value` is undefined when it cannot be decrypted. */
interface StoredVariable {
  readonly id: string
  readonly key: string
  readonly value: string | undefined
  readonly is_secret: boolean
}

interface WantedVariable {
  readonly key: string
  readonly value: string
  readonly is_secret: boolean
}

/** What turns the stored set into the wanted one. A variable that stays as it is appears in none. */
export interface SetChange {
  readonly add: readonly WantedVariable[]
  /** `value` undefined: only `is_secret` changes. */
  readonly update: ReadonlyArray<{
    readonly id: string
    readonly value: string | undefined
    readonly is_secret: boolean
  }>
  readonly remove: readonly string[]
}

const keyForm = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Compares the set a client sent with the stored one; throws a 400 that names the first key at fault. */
export function decideSet(stored: readonly StoredVariable[], inputs: readonly VariableInput[]): SetChange {
  const known = new Map(stored.map(variable => [variable.key, variable]))
  const wanted = checkedKeys(inputs)
  const add: WantedVariable[] = []
  const update: Array<SetChange['update'][number]> = []
  for (const [key, input] of wanted) {
    const before = known.get(key)
    if (input.unchanged === true) {
      const isSecret = secrecyOf(key, input, before)
      if (before !== undefined && isSecret !== before.is_secret)
        update.push({ id: before.id, value: undefined, is_secret: isSecret })
      continue
    }
    const value = checkedValue(key, input.value)
    // A client that does not say stays with what was said before: nothing turns readable by omission.
    const isSecret = input.is_secret ?? before?.is_secret ?? false
    if (before === undefined) add.push({ key, value, is_secret: isSecret })
    else if (value !== before.value || isSecret !== before.is_secret)
      update.push({ id: before.id, value, is_secret: isSecret })
  }
  return { add, update, remove: stored.filter(({ key }) => !wanted.has(key)).map(({ id }) => id) }
}

export const isChange = ({ add, update, remove }: SetChange): boolean =>
  add.length + update.length + remove.length > 0

function checkedKeys(inputs: readonly VariableInput[]): Map<string, VariableInput> {
  const wanted = new Map<string, VariableInput>()
  for (const input of inputs) {
    // An empty row of a form.
    if (input.key.trim() === '') continue
    if (!keyForm.test(input.key)) throw problems.badKey({ key: JSON.stringify(input.key.slice(0, 100)) })
    if (wanted.has(input.key)) throw problems.duplicate({ key: input.key })
    wanted.set(input.key, input)
  }
  return wanted
}

function secrecyOf(
  key: string,
  { is_secret: isSecret }: VariableInput,
  before: StoredVariable | undefined
): boolean {
  if (before === undefined) throw problems.notStored({ key })
  if (isSecret === false && before.is_secret) throw problems.staysSecret({ key })
  return isSecret ?? before.is_secret
}

function checkedValue(key: string, value: string | undefined): string {
  if (value === undefined) throw problems.noValue({ key })
  const bytes = Buffer.byteLength(value)
  if (bytes > mostValueBytes) throw problems.tooLong({ key, bytes, limit: mostValueBytes })
  if (value.includes('\u0000')) throw problems.nul({ key })
  return value
}
