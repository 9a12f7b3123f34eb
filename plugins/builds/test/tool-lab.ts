import { existsSync } from 'node:fs'
import type { Test } from 'tap'
import { type DeployLab, engine, type LabApplication, openLab } from '../../deployments/test/deploy-lab.js'
import { type StandIns, standIns } from './stand-ins.js'

interface ToolLab {
  readonly lab: DeployLab
  readonly tools: StandIns
}

export async function openToolLab(
  t: Test,
  environment: Readonly<Record<string, string>> = {}
): Promise<ToolLab> {
  const tools = await standIns(t)
  const lab = await openLab({ environment: { PATH: tools.path, ...environment } })
  t.teardown(async () => await lab.close())
  return { lab, tools }
}

export const secret = 'a-very-secret-value'

const variables = {
  vars: [
    { key: 'GREETING', value: 'a, b = c', is_secret: false },
    { key: 'API_KEY', value: secret, is_secret: true },
    { key: 'LD_PRELOAD', value: `/tmp/${secret}.so`, is_secret: true },
    { key: 'NODE_OPTIONS', value: '--max-old-space-size=512', is_secret: false },
    { key: 'DOCKER_HOST', value: 'tcp://203.0.113.1:1', is_secret: false },
    { key: 'MULTILINE', value: 'one\ntwo', is_secret: true }
  ]
}

export async function withVariables(
  { lab }: Pick<ToolLab, 'lab'>,
  application: LabApplication
): Promise<void> {
  const answer = await (await lab.k.as.session()).put(`${application.path}/env`, variables)
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
}

export const get = async (lab: DeployLab, path: string): Promise<any> =>
  (await (await lab.k.as.session()).get(path)).body

export const volumesOf = async (id: string): Promise<string[]> =>
  ((await engine.listVolumes({ filters: { label: [`application-id=${id}`] } })).Volumes ?? [])
    .map(({ Name }) => Name)
    .sort()

/** What a program is to call its image: nobody can guess it. */
export const madeName = (id: string): RegExp => new RegExp(`^busbar-build-${id}-[0-9a-f]{20}:latest$`)

export const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`)

export const valuesOf = (argv: readonly string[], option: string): string[] =>
  argv.flatMap((argument, at) => (argv[at - 1] === option ? [argument] : []))
