import { randomUUID } from 'node:crypto'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Instance } from 'busbar/sdk'
import { problems } from './problems.js'

/** It becomes part of a filter of the engine. */
export const instanceIdForm = /^[A-Za-z0-9-]{8,64}$/

/**
 * The id of this installation, by which it knows its containers: `given` by BUSBAR_INSTANCE_ID, or a file under
 * BUSBAR_DIR. Not in the database, because a copy of that must not take over the containers of the original.
 */
export async function readInstanceId(
  given: string | undefined,
  instance: Pick<Instance, 'directory'>
): Promise<string> {
  if (given !== undefined) return given
  const path = join(await instance.directory(), 'instance-id')
  return checked(((await read(path)) ?? (await create(path))).trim(), path)
}

async function create(path: string): Promise<string> {
  const id = randomUUID()
  const draft = `${path}.${id}`
  await writeFile(draft, `${id}\n`)
  try {
    // Whole or not at all, and only once, although two processes may start at the same time.
    await link(draft, path)
    return id
  } catch (error) {
    const other = await read(path)
    if (other === undefined) throw error
    return other
  } finally {
    await rm(draft)
  }
}

async function read(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

function checked(id: string, place: string): string {
  if (!instanceIdForm.test(id)) throw problems.badInstanceId({ place })
  return id
}
