import { randomUUID } from 'node:crypto'
import { cutText, isUuid, type RaisedAudience, type RaisedNotification } from 'busbar/sdk'
import type { NotificationRecord } from '../declarations/records.js'

/** How many characters are kept of the words when they are filled in; a longer link is none. */
const most = { title: 200, body: 2_000, link: 1_000 }

const field = /\{(\w+)\}/g
/** All but tabs and ends of lines, those of one byte too; with those that change the direction of what is read. */
const controls = /[\0-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g
const breaks = /[\t\n\u0085\u2028\u2029]/g

interface Emitted {
  readonly at: Date
  /** Called with what is wrong, in words that name the notification. */
  readonly onFault: (fault: string) => void
}

/** The notifications that an event is: one of each type at most, by the first declaration that fits. */
export function raisedBy(
  records: readonly NotificationRecord[],
  data: unknown,
  { at, onFault }: Emitted
): RaisedNotification[] {
  const facts = (typeof data === 'object' && data !== null ? data : {}) as Readonly<Record<string, unknown>>
  const found = new Map<string, NotificationRecord>()
  for (const record of records)
    if (!found.has(record.type) && fits(record.when, facts)) found.set(record.type, record)
  return [...found.values()].flatMap(record => {
    const blame = (fault: string): void => {
      onFault(`the notification "${record.type}" of the plugin "${record.plugin}": ${fault}`)
    }
    const audience = audienceOf(record, facts, blame)
    if (audience === undefined) return []
    const fill = (words: string, write: (text: string) => string): string =>
      filled(words, facts, write, blame)
    const text = (words: string, max: number): string =>
      cutText(
        fill(words, value => plain(cutText(value, max))),
        max
      )
    const link =
      record.link === null
        ? null
        : fill(record.link, value => encodeURIComponent(value.slice(0, most.link + 1).toWellFormed()))
    return [
      {
        id: randomUUID(),
        type: record.type,
        severity: record.severity,
        audience,
        preference: record.preference,
        title: text(record.title, most.title).replace(breaks, ' ').trim(),
        body: text(record.body, most.body).trim(),
        link: link !== null && link.length > most.link ? null : link,
        occurredAt: at
      }
    ]
  })
}

const fits = (when: NotificationRecord['when'], facts: Readonly<Record<string, unknown>>): boolean =>
  Object.entries(when).every(([name, wanted]) =>
    Array.isArray(wanted) ? wanted.includes(facts[name]) : facts[name] === wanted
  )

/** Undefined where an id is none: there is nobody to tell. */
function audienceOf(
  { audience }: NotificationRecord,
  facts: Readonly<Record<string, unknown>>,
  blame: (fault: string) => void
): RaisedAudience | undefined {
  if (audience === 'admins') return { kind: 'admins' }
  const idIn = (name: string): string | undefined => {
    const id = facts[name]
    if (typeof id === 'string' && isUuid(id)) return id
    blame(`its event has no id in "${name}", so nobody is told`)
    return undefined
  }
  const projectId = audience.project === undefined ? null : idIn(audience.project)
  if (projectId === undefined) return undefined
  if (!('user' in audience)) return projectId === null ? undefined : { kind: 'project', projectId }
  const userId = idIn(audience.user)
  return userId === undefined ? undefined : { kind: 'user', userId, projectId }
}

/** The words, with `write` each text in the place of its field. */
const filled = (
  words: string,
  facts: Readonly<Record<string, unknown>>,
  write: (text: string) => string,
  blame: (fault: string) => void
): string =>
  words.replace(field, (_, name: string) => {
    const value = facts[name]
    if (value === null) return ''
    if (typeof value === 'string') return write(value)
    if (typeof value === 'number' || typeof value === 'boolean') return String(value)
    blame(`its event has neither text nor number in "${name}", which its words name`)
    return ''
  })

/** What PostgreSQL can store and a line can show. */
const plain = (text: string): string => text.toWellFormed().replace(controls, ' ')
