import type { EmailContent } from './api.js'
import { problems } from './problems.js'

/** An e-mail as it is sent. */
export interface RenderedEmail {
  readonly subject: string
  readonly text: string
  readonly html: string
}

/** Header lines end at a line break, so a subject has none; nor anything else that cannot be seen. */
const oneLine = (text: string): string => text.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim()

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;'
}
const escapeHtml = (text: string): string =>
  text.replaceAll(/[&<>"']/g, character => entities[character] ?? '')

const body = 'margin:0 auto;padding:24px;max-width:560px;font:16px/1.5 system-ui,sans-serif;color:#1c2430'
const button =
  'display:inline-block;padding:10px 18px;border-radius:6px;background:#1c2430;color:#ffffff;text-decoration:none'
const small = 'font-size:13px;color:#5c6673'

/** Plain text and simple HTML from the same content, so that both say the same. */
export function renderEmail({ subject, paragraphs, link, note }: EmailContent): RenderedEmail {
  const url = link === undefined ? undefined : checkedUrl(link.url)
  const text = [
    ...paragraphs,
    ...(url === undefined ? [] : [`${link?.label ?? ''}:\n${url}`]),
    ...(note === undefined ? [] : [note])
  ]
  const html = [
    ...paragraphs.map(paragraph => `<p>${escapeHtml(paragraph)}</p>`),
    ...(url === undefined
      ? []
      : [
          `<p><a href="${escapeHtml(url)}" style="${button}">${escapeHtml(link?.label ?? '')}</a></p>`,
          `<p style="${small}">${escapeHtml(url)}</p>`
        ]),
    ...(note === undefined ? [] : [`<p style="${small}">${escapeHtml(note)}</p>`])
  ]
  const title = oneLine(subject)
  return {
    subject: title,
    text: `${text.join('\n\n')}\n`,
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(title)}</title></head><body style="${body}">${html.join('')}</body></html>`
  }
}

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) throw problems.link()
  return url.href
}
