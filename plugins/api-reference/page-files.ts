import { readFile } from 'node:fs/promises'

/** The files of the page and their content types. */
export const pageFiles = {
  'index.html': 'text/html; charset=utf-8',
  'style.css': 'text/css; charset=utf-8',
  'try.css': 'text/css; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'description.js': 'text/javascript; charset=utf-8',
  'operation.js': 'text/javascript; charset=utf-8',
  'channels.js': 'text/javascript; charset=utf-8',
  'schemas.js': 'text/javascript; charset=utf-8',
  'fields.js': 'text/javascript; charset=utf-8',
  'schema.js': 'text/javascript; charset=utf-8',
  'samples.js': 'text/javascript; charset=utf-8',
  'try-it.js': 'text/javascript; charset=utf-8',
  'request.js': 'text/javascript; charset=utf-8',
  'answer.js': 'text/javascript; charset=utf-8',
  'caller.js': 'text/javascript; charset=utf-8',
  'dom.js': 'text/javascript; charset=utf-8'
} as const
export type PageFile = keyof typeof pageFiles

/** What they hold, read once: together they are smaller than a photograph. */
export async function readPage(): Promise<ReadonlyMap<PageFile, string>> {
  const names = Object.keys(pageFiles) as PageFile[]
  const texts = await Promise.all(
    names.map(async name => [name, await readFile(new URL(`page/${name}`, import.meta.url), 'utf8')] as const)
  )
  return new Map(texts)
}
