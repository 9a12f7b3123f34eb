import type { Test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { type DeployLab, type LabApplication, type Mode, openLab, sample } from './deploy-lab.js'

/** A version that is not let serve. */
export interface FailingVersion {
  readonly mode: Mode
  /** How its health is checked; by its port unless given. */
  readonly check?: object
  /** Fields of the deployment. */
  readonly expected: object
}

interface Served {
  readonly lab: DeployLab
  readonly web: LabApplication
  /** Deploys the version, in a test of its own: it is removed, and what served before serves as if nothing had been tried. */
  isRefused(version: FailingVersion): Promise<void>
}

/** An application whose good version serves; undefined where there is no engine. */
export async function startServed(t: Test): Promise<Served | undefined> {
  if (!(await requireEngine(t))) return undefined
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await lab.application('web', sample('good'))
  t.equal((await web.deployed()).status, 'success')

  const serving = async (): Promise<object> => {
    const { direct_url: url, status } = await web.read()
    return {
      status,
      url,
      text: await (await fetch(url)).text(),
      containers: (await web.containers()).map(({ Id, Names }) => [Id, Names])
    }
  }
  return {
    lab,
    web,
    async isRefused({ mode, check, expected }) {
      await t.test(
        `a version that is ${mode}${check === undefined ? '' : ` with ${JSON.stringify(check)}`} is removed and the old one is left alone`,
        async t => {
          t.equal((await admin.put(`${web.path}/health-check`, check ?? { type: 'none' })).status, 200)
          const before = await serving()
          await web.push(sample('bad', mode))
          const ended = await web.deployed()
          t.match(ended, { status: 'failed', finished_at: String, ...expected })
          t.match(JSON.parse(ended.build_logs.trimEnd().split('\n').at(-1)), {
            level: 'error',
            msg: ended.error_message
          })
          t.same(await serving(), before)
        }
      )
    }
  }
}
