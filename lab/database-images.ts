import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { requireEngine } from './engine.js'
import type { Skippable } from './requirements.js'

let made: Promise<unknown> | undefined

/** As `requireEngine`, with the images of database servers, which are made where they are missing. */
export async function requireDatabaseImages(t: Skippable): Promise<boolean> {
  if (!(await requireEngine(t))) return false
  made ??= promisify(execFile)(join(import.meta.dirname, 'make-database-images.sh'))
  await made
  return true
}
