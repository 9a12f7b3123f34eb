import { until } from 'busbar/sdk/testing'
import type Docker from 'dockerode'
import { containersOf, type DeployLab, engine } from '../../deployments/test/deploy-lab.js'

/** An application that runs `busybox:lab` and serves its /data, and what tests do with its volumes. */
interface VolumeApplication {
  readonly id: string
  readonly path: string
  /** Waits for its end, which is to be a success. */
  deployed(verb?: 'deploy' | 'reload' | 'rollback', body?: object): Promise<any>
  addVolume(name: string, mountPath: string): Promise<any>
  /** What a program in the container that serves writes. */
  run(script: string): Promise<string>
  /** The container that serves. */
  container(): Promise<Docker.ContainerInspectInfo>
  /** Until there is one container of it, and this has settled. */
  untilOne(): Promise<void>
}

const script = 'mkdir -p /tmp/www; echo up > /tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www'

export async function volumeApplication(
  lab: Pick<DeployLab, 'k' | 'projectId'>,
  name: string,
  { projectId = lab.projectId, user = 'admin', start = script } = {}
): Promise<VolumeApplication> {
  const caller = async () => {
    lab.k.resetRateLimits()
    return await lab.k.as.session(user)
  }
  const { body, status } = await (await caller()).post(`/api/projects/${projectId}/applications`, {
    name,
    type: 'image',
    build_type: 'image',
    source_image: 'busybox:lab',
    container_port: 8080,
    start_command: `sh -c "${start}"`
  })
  if (status !== 201) throw new Error(JSON.stringify(body))
  const id = body.id as string
  const path = `/api/projects/${projectId}/applications/${id}`
  const serving = async (): Promise<Docker.Container> => {
    const { slug } = (await (await caller()).get(path)).body
    return engine.getContainer(slug)
  }
  return {
    id,
    path,
    async deployed(verb = 'deploy', body = undefined) {
      const begun = await (await caller()).post(`${path}/${verb}`, body)
      if (begun.status !== 202) throw new Error(JSON.stringify(begun.body))
      const read = async (): Promise<any> =>
        (await (await caller()).get(`${path}/deployments/${begun.body.id}`)).body
      await until(async () => ['success', 'failed'].includes((await read()).status), 'it has ended', 120_000)
      const ended = await read()
      if (ended.status !== 'success') throw new Error(`${ended.error_message}\n${ended.build_logs}`)
      return ended
    },
    async addVolume(volume, mountPath) {
      const answer = await (await caller()).post(`${path}/volumes`, { name: volume, mount_path: mountPath })
      if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
      return answer.body
    },
    async run(program) {
      const container = await serving()
      const exec = await container.exec({
        Cmd: ['sh', '-c', program],
        AttachStdout: true,
        AttachStderr: true,
        Tty: true
      })
      let text = ''
      for await (const piece of await exec.start({ Tty: true })) text += String(piece)
      return text.replaceAll('\r\n', '\n').trim()
    },
    container: async () => await (await serving()).inspect(),
    untilOne: async () => {
      const count = async (): Promise<number> =>
        // What holds the files of a container has a label more.
        (await containersOf(id)).filter(({ Labels: labels }) => !labels['busbar-system']).length
      await until(async () => (await count()) === 1, 'one container of it is left', 60_000)
    }
  }
}

/** Whether the engine has it. */
export const hasVolume = async (name: string): Promise<boolean> =>
  await engine
    .getVolume(name)
    .inspect()
    .then(
      () => true,
      () => false
    )

/** What restores and drills of a volume have on the engine. */
export async function sparesOf(volumeId: string): Promise<string[]> {
  const { Volumes: all } = await engine.listVolumes()
  const isOwn = (name: string): boolean => name.includes(volumeId.slice(0, 8))
  return (all ?? [])
    .map(({ Name }) => Name)
    .filter(name => /^busbar-(?:spare|drill)-/.test(name) && isOwn(name))
}

/** What a program that may do all writes, in a container of the test's own that has the volume at /volume. */
export async function inVolume(engineName: string, script: string): Promise<string> {
  const container = await engine.createContainer({
    Image: 'busybox:lab',
    Cmd: ['sh', '-c', `cd /volume; ${script}`],
    Tty: true,
    HostConfig: { NetworkMode: 'none', Binds: [`${engineName}:/volume`] }
  })
  try {
    await container.start()
    await container.wait()
    const output = await container.logs({ stdout: true, stderr: true })
    return output.toString().replaceAll('\r\n', '\n').trim()
  } finally {
    await container.remove({ force: true })
  }
}

/** Of every file in a volume what a copy has to have, with its bytes as a sum. */
export const everythingIn = async (engineName: string): Promise<string> =>
  await inVolume(
    engineName,
    [
      `find . -exec stat -c '%n %a %u:%g %h %F' {} + | sort`,
      `find . -type f -exec stat -c '%n %s %Y' {} + | sort`,
      `find . -type l | sort | while read -r one; do readlink "$one"; done`,
      'find . -type f -exec md5sum {} + | sort'
    ].join('; ')
  )

/** What a volume of an application is called on the engine. */
export const engineNameOf = (applicationId: string, name: string): string =>
  `busbar-vol-${applicationId.slice(0, 8)}-${name}`
