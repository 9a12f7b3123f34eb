import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import { engineTest, type Lab } from '../../runtime-docker/test/lab.js'
import { startDockerfileLab } from './dockerfile-lab.js'

/** An image with triggers, made by hand, that everybody may build upon; its name. */
async function triggeringBase(t: Test, { docker, instanceId }: Lab, triggers: readonly string[]) {
  const [repo, tag] = [`busbar-onbuild-${instanceId}`, '1']
  const container = await docker.createContainer({ Image: 'busybox:lab', Cmd: ['true'] })
  await new Promise<void>((resolve, reject) => {
    // dockerode sends no configuration with a commit.
    docker.modem.dial(
      {
        path: '/commit?',
        method: 'POST',
        options: { _query: { container: container.id, repo, tag }, _body: { OnBuild: triggers } },
        statusCodes: { 201: true }
      },
      error => {
        if (error === null || error === undefined) resolve()
        else reject(error as Error)
      }
    )
  })
  await container.remove()
  t.teardown(async () => {
    await docker
      .getImage(`${repo}:${tag}`)
      .remove({ force: true })
      .catch(() => undefined)
  })
  return `${repo}:${tag}`
}

engineTest('what the triggers of a base image make for one application, no other one gets', async t => {
  const { build, lab } = startDockerfileLab(t)
  const base = await triggeringBase(t, lab, [
    'COPY package.json /app/',
    'RUN head -c 12 /dev/urandom | base64 > /installed; echo "proxy=$HTTP_PROXY" >> /installed'
  ])
  const files = (from: string) => ({
    Dockerfile: `FROM ${from}\nARG HTTP_PROXY\nRUN echo "installed $(cat /installed)"\n`,
    'package.json': '{"private": true}'
  })
  const installed = (log: string): string | undefined => /^installed (\S+)$/m.exec(log)?.[1]

  const first = await build(files(base), randomUUID(), [
    { key: 'HTTP_PROXY', value: 'http://proxy.example.com', isSecret: false }
  ])
  t.equal(first.error, undefined)
  t.type(installed(first.log), 'string')
  t.match(first.log, /^proxy=http:\/\/proxy\.example\.com$/m)
  t.match(first.log, new RegExp(`without the cache.*${base}.*ONBUILD`), 'why it takes longer is told')

  const second = await build(files(base))
  t.equal(second.error, undefined)
  t.type(installed(second.log), 'string')
  t.not(installed(second.log), installed(first.log), 'with the same files')
  t.match(second.log, /^proxy=$/m, 'through its own proxy')
  t.notMatch(second.log, /Using cache/, 'and neither is told that they are the same')

  const applicationId = randomUUID()
  const staged = await build(
    {
      ...files(base),
      Dockerfile: `FROM ${base} AS tools\nFROM busybox:lab\nCOPY --from=tools /installed /installed\nRUN echo "installed $(cat /installed)"\n`
    },
    applicationId
  )
  t.type(installed(staged.log), 'string')
  t.not(installed(staged.log), installed(first.log), 'in a stage neither')

  for (const { tag } of [first, second, staged]) await lab.runtime.removeImage(tag)
  await lab.runtime.clearBuildCache({ applicationId })
  const baseId = (await lab.runtime.image(base))?.id
  const images = await lab.docker.listImages({ all: true })
  t.same(
    images.filter(({ ParentId }) => ParentId === baseId),
    [],
    'and what was made goes with their images'
  )
})

engineTest('a step that ran through the proxy of one application is not taken by another one', async t => {
  const { build } = startDockerfileLab(t)
  const files = { Dockerfile: 'FROM busybox:lab\nARG HTTP_PROXY\nRUN echo "made through $HTTP_PROXY"\n' }
  const proxy = [{ key: 'HTTP_PROXY', value: 'http://proxy.example.com', isSecret: false }]
  const owner = randomUUID()
  t.match((await build(files, owner, proxy)).log, /^made through http/m)
  t.match((await build(files, owner, proxy)).log, /Using cache/, 'its own step it takes again')
  t.match((await build(files)).log, /^made through $/m)
})

engineTest('the log does not say by which label a step is known to be of an application', async t => {
  const { build, lab } = startDockerfileLab(t)
  const applicationId = randomUUID()
  const { projectId } = lab
  const signature = (await lab.runtime.imageLabels({ projectId, applicationId }))['busbar-signature'] ?? ''
  t.ok(signature.length > 20)
  for (const Dockerfile of ['FROM scratch\nCOPY Dockerfile /\n', 'FROM busybox:lab\nRUN false\n']) {
    const { log, error } = await build({ Dockerfile }, applicationId)
    t.match(log, new RegExp(`: LABEL .*application-id=${applicationId}`))
    t.notOk(`${log}${error?.message}`.includes(signature))
  }
})
