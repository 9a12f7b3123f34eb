import { type PageFile, readPage } from './page-files.js'

/** The running plugin. */
export interface ApiReference {
  /** The files of the page. */
  readonly texts: ReadonlyMap<PageFile, string>
}

export async function startApiReference(): Promise<ApiReference> {
  return { texts: await readPage() }
}
