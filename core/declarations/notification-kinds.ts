import {
  alertPreferences,
  type NotificationKind,
  type NotificationSpec,
  notificationSeverities
} from 'busbar/sdk'
import type { NotificationRecord } from './records.js'

const typeName = /^[a-z][a-z0-9_-]*(?:\.[a-z][a-z0-9_-]*)+$/
const longest = { type: 100, label: 100, description: 500, group: 60, title: 200, body: 2_000, link: 500 }
const field = /\{\w+\}/g
const kindFields = ['label', 'description', 'group', 'severity'] as const

type Fields = Readonly<Record<string, string>>
type Unknown = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is Unknown => typeof value === 'object' && value !== null
const isScalar = (value: unknown): boolean =>
  value === null || ['string', 'number', 'boolean'].includes(typeof value)
const isText = (value: unknown, max: number): value is string =>
  typeof value === 'string' && value.trim() !== '' && value.length <= max

/** What is wrong with a declared notification, whatever its types claim: plugins may be JavaScript. */
export function notificationFaults(
  { id, builtIn }: { readonly id: string; readonly builtIn: boolean },
  event: unknown,
  spec: unknown,
  earlier: readonly NotificationRecord[]
): string[] {
  const faults: string[] = []
  const eventId = isObject(event) ? event.id : undefined
  if (typeof eventId !== 'string' || !eventId.startsWith(`${id}.`))
    faults.push(`it takes an event of the plugin: event('${id}.…')`)
  if (!isObject(spec)) return [...faults, 'it takes an object that says what is told to whom']
  const { type, severity, when, audience, preference } = spec
  if (typeof type !== 'string' || !typeName.test(type) || type.length > longest.type)
    faults.push('type is lower-case words joined by ".": order.shipped')
  else if (!builtIn && !type.startsWith(`x.${id}.`))
    faults.push(`the types of a third-party plugin begin with x.${id}.`)
  else if (builtIn && type.startsWith('x.')) faults.push('x. is for third-party plugins')
  for (const name of ['label', 'description', 'group'] as const)
    if (!isText(spec[name], longest[name]))
      faults.push(`${name} is a text of 1 to ${longest[name]} characters`)
  if (!isOneOf(notificationSeverities, severity))
    faults.push(`severity is ${notificationSeverities.join(', ')}`)
  if (preference !== undefined && !isOneOf(alertPreferences, preference))
    faults.push(`preference is one of ${alertPreferences.join(', ')}, or left out`)
  if (when !== undefined && !(isObject(when) && Object.values(when).flat().every(isScalar)))
    faults.push("when has a value, or a list of values, for fields of the event: { status: 'failed' }")
  if (!isAudience(audience))
    faults.push(
      "audience names a field of the event, { project: 'projectId' } or { user: 'userId' }, or is admins"
    )
  faults.push(...wordFaults(spec))
  const same = earlier.find(other => other.type === type)
  const unlike = same && kindFields.find(name => same[name] !== spec[name])
  if (unlike !== undefined)
    faults.push(`its ${unlike} is another one than where this type was declared before`)
  return faults
}

const isOneOf = (values: readonly string[], value: unknown): boolean =>
  typeof value === 'string' && values.includes(value)

function isAudience(audience: unknown): boolean {
  if (!isObject(audience)) return audience === 'admins'
  const { project, user, ...others } = audience
  const isField = (value: unknown): boolean => isText(value, longest.label)
  return (
    Object.keys(others).length === 0 &&
    (user === undefined ? isField(project) : isField(user) && (project === undefined || isField(project)))
  )
}

function wordFaults({ title, body, link }: Unknown): string[] {
  const faults: string[] = []
  if (!isText(title, longest.title) || /[\r\n]/.test(title))
    faults.push(`title is one line of 1 to ${longest.title} characters`)
  if (body !== undefined && !isText(body, longest.body))
    faults.push(`body is a text of ${longest.body} characters at most`)
  if (link !== undefined && !(isText(link, longest.link) && /^\/(?!\/)\S*$/.test(link)))
    faults.push('link is a path of the dashboard, which begins with /')
  for (const [name, words] of Object.entries({ title, body, link }))
    if (typeof words === 'string' && /[{}]/.test(words.replace(field, '')))
      faults.push(`${name} has a brace that belongs to no {field}`)
  return faults
}

/** The record of a declaration without faults. */
export function notificationRecord(
  plugin: string,
  eventId: string,
  {
    type,
    label,
    description,
    group,
    severity,
    when,
    audience,
    preference,
    title,
    body,
    link
  }: NotificationSpec<Fields, string, string, string>
): NotificationRecord {
  return {
    plugin,
    eventId,
    type,
    label,
    description,
    group,
    severity,
    when: { ...when },
    audience,
    preference: preference ?? null,
    title,
    body: body ?? '',
    link: link ?? null
  }
}

/** Notification types that two plugins declare. */
export const notificationConflicts = (
  candidate: readonly NotificationRecord[],
  others: readonly NotificationRecord[]
): string[] => [
  ...new Set(
    candidate.flatMap(({ type, plugin }) => {
      const other = others.find(one => one.type === type && one.plugin !== plugin)
      return other === undefined
        ? []
        : [`the notification "${type}" is already declared by "${other.plugin}"`]
    })
  )
]

/** What is declared of each type, by group and type. */
export const kindsOf = (records: readonly NotificationRecord[]): readonly NotificationKind[] => {
  const kinds = new Map(
    records.map(({ type, label, description, group, severity }) => [
      type,
      { type, label, description, group, severity }
    ])
  )
  const order = ({ group, type }: NotificationKind): string => `${group}\n${type}`
  return [...kinds.values()].sort((a, b) => (order(a) < order(b) ? -1 : 1))
}
