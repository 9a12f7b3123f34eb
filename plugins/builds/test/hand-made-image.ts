import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { engine } from '../../deployments/test/deploy-lab.js'

const follow = async (stream: NodeJS.ReadableStream): Promise<void> =>
  await new Promise<void>((resolve, reject) => {
    engine.modem.followProgress(stream, (error, events: Array<{ error?: string }>) => {
      const failed = error ?? events.find(event => event.error !== undefined)?.error
      if (failed === undefined || failed === null) resolve()
      else reject(new Error(String(failed)))
    })
  })

/** An image made by hand, which no platform knows. */
export async function makeImage(t: Test, name: string, dockerfile: string): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-foreign-'))
  await writeFile(join(directory, 'Dockerfile'), dockerfile)
  await follow(await engine.buildImage({ context: directory, src: ['Dockerfile'] }, { t: name }))
  await rm(directory, { recursive: true })
  t.teardown(async () => {
    await engine
      .getImage(name)
      .remove({ force: true })
      .catch(() => undefined)
  })
}

/** Hands it to its registry, and forgets it here. */
export const push = async (name: string, account: object = {}): Promise<void> => {
  await follow(
    await engine.getImage(name).push({ authconfig: { ...account, serveraddress: name.split('/')[0] ?? '' } })
  )
  await engine.getImage(name).remove({ force: true })
}
