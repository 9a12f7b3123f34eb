import { randomBytes } from 'node:crypto'

type Schema = Readonly<Record<string, any>>

/** Fields that hold a secret, by the last word of their name: so that a field nobody has thought of yet is watched too. */
const secretName =
  /(^|_)(password|passphrase|secret|token|credential|credentials|private_key|secret_key|access_key|key_pem|webhook_url|challenge|recovery_codes?)$/
/** Fields that are secret where a switch beside them says so. */
const sealedName = /^(value|content)$/
/** Shorter ones would be found by chance. */
const shortest = 9

const isSecretName = (name: string): boolean => secretName.test(name)

/** Where secrets go in a body of this schema: `git_token`, `vars.0.value`. */
export function secretPlaces(
  schema: Schema | undefined,
  at: readonly string[] = []
): Array<readonly string[]> {
  if (schema === undefined || at.length > 8) return []
  const inside = [...((schema.anyOf ?? []) as Schema[]), ...((schema.oneOf ?? []) as Schema[])].flatMap(
    option => secretPlaces(option, at)
  )
  const items = schema.items === undefined ? [] : secretPlaces(schema.items as Schema, [...at, '0'])
  const properties = (schema.properties ?? {}) as Record<string, Schema>
  const own = Object.entries(properties).flatMap(([name, value]) => {
    const isText = [value.type].flat().includes('string') && value.enum === undefined
    const isSecret = isText && (isSecretName(name) || (sealedName.test(name) && 'is_secret' in properties))
    return isSecret ? [[...at, name]] : secretPlaces(value, [...at, name])
  })
  return [...own, ...inside, ...items]
}

/** A value that can occur nowhere by chance. */
export const canary = (): string => `Canary/${randomBytes(12).toString('base64url')}+="&`

/** The body with the canary in that place; what leads there is made where it is missing. */
export function plant(body: unknown, [first, ...rest]: readonly string[], value: string): unknown {
  if (first === undefined) return value
  if (/^\d+$/.test(first)) {
    const list = Array.isArray(body) ? [...(body as unknown[])] : []
    const last = Math.max(0, list.length - 1)
    list[last] = plant(list[last], rest, value)
    return list
  }
  const object = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {}
  const needsKey = sealedName.test(first)
    ? { is_secret: true, ...('key' in object ? {} : { key: 'CANARY' }) }
    : {}
  return { ...object, ...needsKey, [first]: plant(object[first], rest, value) }
}

/** The secrets in a body or an answer, by the names of their fields. */
export function secretsIn(value: unknown, isSecret = false): string[] {
  if (typeof value === 'string') return isSecret && value.length >= shortest ? [value] : []
  if (Array.isArray(value)) return value.flatMap(item => secretsIn(item, isSecret))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => secretsIn(inner, isSecretName(name)))
}

/** Secrets in every dress they may wear, to be looked for in what the platform writes. */
export class Watch {
  /** Form → how the secret came about. */
  readonly #forms = new Map<string, string>()

  add(secret: string, origin: string): void {
    const bytes = Buffer.from(secret)
    const base64 = bytes.toString('base64').replace(/=+$/, '')
    const forms = [
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret),
      encodeURIComponent(secret).toLowerCase(),
      // Cut at both ends, where they depend on the neighbours; this finds it only when it begins a group of three.
      base64.slice(0, -1),
      bytes.toString('base64url').slice(0, -1),
      bytes.toString('hex'),
      Buffer.from(`:${secret}`).toString('base64').slice(2, -4),
      Buffer.from(`::${secret}`).toString('base64').slice(3, -4)
    ]
    for (const form of forms) if (form.length >= shortest) this.#forms.set(form, origin)
  }

  get size(): number {
    return this.#forms.size
  }

  /** Where the secrets in this text came from; `allowed` ones aside. */
  find(text: string, allowed: readonly string[] = []): string[] {
    const found: string[] = []
    for (const [form, origin] of this.#forms)
      if (
        !allowed.some(one => one === form || JSON.stringify(one).slice(1, -1) === form) &&
        text.includes(form)
      )
        found.push(
          `${origin}: …${text.slice(Math.max(0, text.indexOf(form) - 120), text.indexOf(form))}‹here›`
        )
    return found
  }
}
