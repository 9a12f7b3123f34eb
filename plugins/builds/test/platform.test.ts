import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import Docker from 'dockerode'
import { type Test, test } from 'tap'
import { pack } from 'tar-stream'
import { engineTest } from '../../runtime-docker/test/lab.js'
import { isForPlatform } from '../dockerfile/platform.js'
import { startDockerfileLab } from './dockerfile-lab.js'

const listType = 'application/vnd.docker.distribution.manifest.list.v2+json'
const manifestType = 'application/vnd.docker.distribution.manifest.v2+json'
const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

interface Registry {
  readonly host: string
  /** The requests for manifests. */
  readonly asked: readonly string[]
  /** Makes `name:1`, for each of these processors; the digests of the list, and of each processor. */
  publish(name: string, processors: readonly string[]): Promise<readonly [list: string, ...own: string[]]>
  close(): void
}

async function startRegistry(t: Test): Promise<Registry> {
  const held = new Map<string, { readonly type: string; readonly bytes: Buffer }>()
  const asked: string[] = []
  const server = createServer((request, response) => {
    const [, kind, reference = ''] = /^\/v2\/(.+\/(?:blobs|manifests))\/(.*)$/.exec(request.url ?? '') ?? []
    if (kind?.endsWith('manifests')) asked.push(`${kind}/${reference}`)
    const found = held.get(kind?.endsWith('manifests') ? `${kind}/${reference}` : reference)
    if (kind !== undefined && found === undefined) response.writeHead(404).end('{"errors":[]}')
    else if (found === undefined) response.end('{}')
    else {
      response.writeHead(200, {
        'content-type': found.type,
        'content-length': found.bytes.length,
        'docker-content-digest': digestOf(found.bytes)
      })
      response.end(request.method === 'HEAD' ? undefined : found.bytes)
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const close = (): void => {
    server.closeAllConnections()
    server.close()
  }
  t.teardown(close)
  const blob = (bytes: Buffer) => {
    held.set(digestOf(bytes), { type: 'application/octet-stream', bytes })
    return { digest: digestOf(bytes), size: bytes.length }
  }
  const manifest = (name: string, tag: string | undefined, type: string, content: object) => {
    const bytes = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: type, ...content }))
    const digest = digestOf(bytes)
    for (const key of [tag ?? digest, digest]) held.set(`${name}/manifests/${key}`, { type, bytes })
    return { digest, size: bytes.length, mediaType: type }
  }
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    close,
    publish: async (name, processors) => {
      const manifests = []
      for (const architecture of processors) {
        const tar = pack()
        tar.entry({ name: 'made-for' }, `${name} ${architecture}`)
        tar.finalize()
        const chunks: Buffer[] = []
        for await (const chunk of tar) chunks.push(Buffer.from(chunk as Buffer))
        const layer = Buffer.concat(chunks)
        const image = {
          architecture,
          os: 'linux',
          config: {},
          rootfs: { type: 'layers', diff_ids: [digestOf(layer)] },
          history: [{ created_by: 'lab' }]
        }
        const own = manifest(name, undefined, manifestType, {
          config: {
            mediaType: 'application/vnd.docker.container.image.v1+json',
            ...blob(Buffer.from(JSON.stringify(image)))
          },
          layers: [
            { mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip', ...blob(gzipSync(layer)) }
          ]
        })
        manifests.push({ ...own, platform: { os: 'linux', architecture } })
      }
      const list = manifest(name, '1', listType, { manifests })
      return [list.digest, ...manifests.map(({ digest }) => digest)]
    }
  }
}

async function startPlatformLab(t: Test) {
  const docker = new Docker()
  const own = (await docker.version()).Arch
  const other = own === 'arm64' ? 'amd64' : 'arm64'
  const registry = await startRegistry(t)
  // After what was built upon them.
  t.teardown(async () => {
    for (const { Id: id, RepoTags: tags, RepoDigests: digests } of await docker.listImages())
      if ([...(tags ?? []), ...(digests ?? [])].some(name => name.startsWith(`${registry.host}/`)))
        await docker
          .getImage(id)
          .remove({ force: true })
          .catch(() => undefined)
  })
  const dockerfiles = startDockerfileLab(t, undefined, 'allow')
  const processorOf = async (image: string): Promise<string> =>
    (await docker.getImage(image).inspect()).Architecture
  /** What an image is made for that is built upon `from`, or why there is none. */
  const madeFor = async (from: string): Promise<string | undefined> => {
    const { image, error } = await dockerfiles.build({ Dockerfile: `FROM ${from}\nENV A=1\n` })
    return image === undefined ? error?.message : await processorOf(image.id)
  }
  return { ...dockerfiles, registry, docker, own, other, processorOf, madeFor }
}

engineTest(
  'a platform in the Dockerfile of one application changes no base image of another one',
  async t => {
    const { registry, own, other, madeFor } = await startPlatformLab(t)
    const base = `${registry.host}/team/base`
    const [list, , ofOther = ''] = await registry.publish('team/base', [own, other])
    for (const name of [`${base}:1`, `${base}@${list}`]) {
      t.match(
        await madeFor(`--platform=linux/${other} ${name}`),
        new RegExp(`line 1: --platform="linux/${other}".*is made for linux/${own}.*leave --platform out`)
      )
      t.equal(await madeFor(name), own)
      t.equal(await madeFor(`--platform=linux/${own} ${name}`), own)
    }
    t.equal(
      await madeFor(`--platform=linux/${other} ${base}@${ofOther}`),
      other,
      'by a digest of its own it is to be had'
    )
    t.equal(await madeFor(`${base}:1`), own)
  }
)

engineTest('what the engine holds for another kind of machine is asked for anew', async t => {
  const { registry, docker, own, other, processorOf, madeFor, build } = await startPlatformLab(t)
  const pullByHand = async (name: string): Promise<void> => {
    const stream = await docker.createImage({ fromImage: name, platform: `linux/${other}` })
    await new Promise(resolve => docker.modem.followProgress(stream, resolve))
    t.equal(await processorOf(name), other)
  }
  const [base, away, foreign] = ['base', 'away', 'foreign'].map(
    name => `${registry.host}/team/${name}:1`
  ) as [string, string, string]
  for (const name of ['base', 'away']) await registry.publish(`team/${name}`, [own, other])
  await pullByHand(base)
  t.equal(await madeFor(base), own)
  const count = registry.asked.length
  t.equal(await madeFor(base), own)
  t.equal(registry.asked.length, count, 'once')

  await pullByHand(base)
  t.equal(await madeFor(`--platform=linux/${other} ${base}`), other, 'unless that is what is wanted')

  await pullByHand(away)
  registry.close()
  t.equal(await madeFor(base), own, 'what was fetched stays')
  const { image, log } = await build({ Dockerfile: `FROM ${away}\nENV A=1\n` })
  t.equal(await processorOf(image?.id ?? ''), other)
  t.match(log, new RegExp(`${away} on this machine is used as it is, although it is made for linux/${other}`))

  await docker.getImage(base).tag({ repo: foreign.slice(0, -2), tag: '1' })
  t.notMatch(
    (await build({ Dockerfile: `FROM ${foreign}\nENV A=1\n` })).log,
    /is used as it is/,
    'what no registry has is not asked for'
  )
})

test('a platform is compared as the engine compares it', t => {
  for (const wanted of ['linux', 'amd64', 'linux/amd64']) t.ok(isForPlatform('linux/amd64', wanted), wanted)
  for (const wanted of ['windows', 'linux/386', 'linux/amd64/v3', 'windows/amd64'])
    t.notOk(isForPlatform('linux/amd64', wanted), wanted)
  for (const made of ['linux/arm64', 'linux/arm64/v8'])
    for (const wanted of ['arm64', 'linux/arm64', 'linux/aarch64', 'linux/arm64/v8'])
      t.ok(isForPlatform(made, wanted), `${made} ${wanted}`)
  t.ok(isForPlatform('linux/arm', 'linux/arm/v7'))
  t.notOk(isForPlatform('linux/arm/v6', 'linux/arm/v7'))
  t.notOk(isForPlatform('', 'linux/amd64'))
  t.end()
})
