/**
 * `npm run examples`: serves each sample application as a Git repository over HTTP, until it is ended.
 * A clone may push: the next deploy takes what was pushed. EXAMPLES_PORT chooses another port than 7070.
 */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startGitServer } from '../lab/git-server.js'
import { readSample, samplesFolder } from './demo/sample-app.js'

const root = await mkdtemp(join(tmpdir(), 'busbar-examples-'))
const server = await startGitServer({ root, port: Number(process.env.EXAMPLES_PORT ?? 7070) })
const names = (await readdir(samplesFolder, { withFileTypes: true }))
  .filter(entry => entry.isDirectory())
  .map(({ name }) => name)
for (const name of names) {
  const { url } = await server.createRepository(name, await readSample(name))
  console.log(url)
}

let isEnding = false
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (isEnding) return
    isEnding = true
    void server
      .close()
      .then(async () => await rm(root, { recursive: true, force: true }))
      .then(() => process.exit(0))
  })
}
