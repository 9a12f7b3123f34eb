import { randomBytes } from 'node:crypto'
import { type Test, test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import type { GitFiles } from '../../../lab/git-server.js'
import { rotatingSample, type SampleOptions } from '../../../scripts/rotating-sample.mjs'
import { engine, type LabApplication } from '../../deployments/test/deploy-lab.js'
import { dockerfilesOfFeatures } from './dockerfiles-of-features.js'
import { dockerfilesOfLanguages } from './dockerfiles-of-languages.js'
import { type EngineKind, openEngineLab } from './engine-lab.js'
import { ensureStandIns } from './stand-in-bases.js'
import type { WrittenDockerfile } from './written-dockerfile.js'

const all: readonly WrittenDockerfile[] = [...dockerfilesOfLanguages, ...dockerfilesOfFeatures]

/** Dockerfiles as people write them are built by a kind of build engine, and what comes of them runs. */
export function testWrittenDockerfiles(name: string, kind: EngineKind, sampling?: SampleOptions): void {
  void test(`${name} builds Dockerfiles as people write them, and what it makes of them runs`, async t => {
    if (!(await requireEngine(t))) return
    await ensureStandIns(engine)
    const untagged = await untaggedBase(t)
    const lab = await openEngineLab(t, kind)
    const titles = all.map(({ title }) => title)
    const chosen =
      sampling === undefined
        ? new Set(titles)
        : rotatingSample('Dockerfiles as people write them', titles, sampling)
    // While one is handed over, the next is built.
    t.jobs = 2
    const cases = all
      .filter(({ title }) => chosen.has(title))
      .map(written =>
        t.test(written.title, { buffered: true }, async t => {
          const application = await lab.application(
            nameOf(written),
            withUntagged(written.files, untagged),
            written.fields
          )
          if (written.variables !== undefined) {
            const put = await (await lab.k.as.session()).put(`${application.path}/env`, {
              vars: written.variables
            })
            t.equal(put.status, 200)
          }
          const deployed = await application.deployed()
          if (written.since !== undefined && kind.docker < written.since.docker)
            t.match(deployed, { status: 'failed', error_message: written.since.refusal })
          else await runs(t, written, application, deployed)
          if (written.notInLog !== undefined) t.notMatch(deployed.build_logs, written.notInLog)
        })
      )
    await Promise.all(cases)
  })
}

async function runs(
  t: Test,
  { says, config, log, variables = [] }: WrittenDockerfile,
  application: LabApplication,
  deployed: any
): Promise<void> {
  t.equal(deployed.status, 'success', `${deployed.error_message}\n${deployed.build_logs}`)
  if (deployed.status !== 'success') return
  if (log !== undefined) t.match(deployed.build_logs, log)
  const { direct_url } = await application.read()
  for (const [path, expected] of Object.entries(says)) {
    const text = await (await fetch(`${direct_url}${path}`)).text()
    if (typeof expected === 'string') t.equal(text, expected, path)
    else t.match(text, expected, path)
  }
  const image = await engine.getImage(deployed.image_tag).inspect()
  for (const { value, is_secret } of variables)
    if (is_secret) t.notMatch(JSON.stringify([image, await engine.getImage(image.Id).history()]), value)
  if (config === undefined) return
  const { Env: wanted = [], ...others } = config as { readonly Env?: readonly string[] }
  t.match(image.Config, others)
  for (const variable of wanted) t.ok(image.Config.Env.includes(variable), variable)
}

/** An image of the test's own whose tag is `latest`. */
async function untaggedBase(t: Test): Promise<string> {
  const name = `busbar-lab-${randomBytes(4).toString('hex')}`
  await engine.getImage('busybox:lab').tag({ repo: name, tag: 'latest' })
  t.teardown(async () => {
    await engine.getImage(`${name}:latest`).remove()
  })
  return name
}

const withUntagged = (files: GitFiles, name: string): GitFiles =>
  Object.fromEntries(
    Object.entries(files).map(([path, content]) => [
      path,
      typeof content === 'string' ? content.replaceAll('{untagged}', name) : content
    ])
  )

const nameOf = ({ title }: WrittenDockerfile): string => `case-${all.findIndex(one => one.title === title)}`
