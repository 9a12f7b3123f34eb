import type { ContainerRuntime, ImageInfo } from 'busbar/api/runtime-docker'
import { isProblem } from 'busbar/sdk'
import { relative, sep } from 'node:path'
import { Readable } from 'node:stream'
import { pack } from 'tar-fs'
import type { Builder, BuildContext, BuildRequest } from '../api.js'
import { chooseFiles, packFiles } from '../context/build-context.js'
import { labelDockerfile } from './dockerfile.js'
import { problems } from '../problems.js'
import type { BuildLimits } from '../settings.js'
import { builtDockerfile, nothingToServe, plainDockerfile } from './static-dockerfile.js'
import { configFile, serverConfig } from './static-server.js'
import { findSite, type StaticSite } from './static-site.js'

export interface StaticParts {
  readonly runtime: ContainerRuntime
  readonly limits: BuildLimits
  /** An image with nginx, that serves. */
  readonly serverImage: string
  /** An image with Node.js, that builds sites which need it. */
  readonly buildImage: string
}

const dockerfile = 'Dockerfile.busbar-static'

/** Serves the files of the source, or what its build makes of them, from a small web server. */
export class StaticBuilder implements Builder {
  constructor (private readonly parts: StaticParts) {}

  async build (request: BuildRequest, { log, signal }: BuildContext): Promise<ImageInfo> {
    const { applicationId, deploymentId, projectId, tag, noCache } = request
    const { runtime, limits: usual } = this.parts
    const limits = request.limits ?? usual
    const chosen = choices(request.variables)
    const site = await findSite(request.directory, chosen.directory)
    log({ level: 'info', msg: describe(site, this.parts) })
    const variables = site.kind === 'built' ? request.variables.filter(({ isSecret }) => !isSecret) : []
    if (site.kind === 'built') warnOfSecrets(request, log)
    const owner = { projectId, applicationId, deploymentId }
    let found: string | undefined
    try {
      const text = labelDockerfile(this.#dockerfile(site, chosen, variables.map(({ key }) => key)), await runtime.imageLabels(owner))
      const context = site.kind === 'plain'
        ? plainContext(site, chosen, text)
        : packFiles(request.directory, await chooseFiles(request.directory, dockerfile, signal), dockerfile, text)
      const buildArgs = Object.fromEntries(variables.map(({ key, value }) => [key, value]))
      return await runtime.build(context, { tag, dockerfile, buildArgs, owner, isLabelled: true, noCache, ...limits }, {
        signal,
        onLine: line => {
          if (line.startsWith(nothingToServe)) found = line.slice(nothingToServe.length)
          log({ level: 'info', stream: 'stdout', msg: line })
        }
      })
    } catch (error) {
      if (!isProblem(error)) throw error
      if (/^E_(REGISTRY|IMAGE)_/.test(error.code)) throw problems.staticImage({ reason: error.message })
      if (found === undefined || site.kind !== 'built') throw error
      throw problems.siteNotBuilt({ command: site.install.build, folders: site.folders.join(', '), found: found === '' ? 'nothing' : found })
    }
  }

  #dockerfile (site: StaticSite, { fallback }: Choices, variables: readonly string[]): string {
    const { serverImage, buildImage } = this.parts
    return site.kind === 'plain' ? plainDockerfile({ serverImage }) : builtDockerfile({ ...site, serverImage, buildImage, hasFallback: fallback ?? null, variables })
  }
}

interface Choices { readonly directory?: string, readonly fallback?: boolean }

/** What the user says by variables of the application, because no field of it would. */
function choices (variables: BuildRequest['variables']): Choices {
  const value = (name: string): string | undefined => variables.find(({ key }) => key === name)?.value.trim()
  const fallback = value('STATIC_SPA')?.toLowerCase()
  if (fallback !== undefined && !['', 'true', 'false'].includes(fallback)) throw problems.badChoice({ name: 'STATIC_SPA', value: fallback.slice(0, 100), allowed: 'true or false' })
  const directory = value('STATIC_DIRECTORY')
  return {
    ...(directory !== undefined && directory !== '' && { directory }),
    ...(fallback !== undefined && fallback !== '' && { fallback: fallback === 'true' })
  }
}

const describe = (site: StaticSite, { serverImage, buildImage }: StaticParts): string => site.kind === 'plain'
  ? `Serving ${site.path === '' ? 'the root directory' : site.path} as it is, on ${serverImage}`
  : `Building with ${buildImage} (${site.install.install}; ${site.install.build}), serving on ${serverImage}`

function warnOfSecrets ({ variables }: BuildRequest, log: BuildContext['log']): void {
  const names = variables.filter(({ isSecret }) => isSecret).map(({ key }) => key)
  if (names.length > 0) log({ level: 'warning', msg: `The build does not see ${names.join(', ')}: secret variables could be read from what is served` })
}

/** The site and the server's configuration; nothing hidden, and no links that could lead elsewhere are followed. */
function plainContext (site: Extract<StaticSite, { kind: 'plain' }>, { fallback }: Choices, text: string): Readable {
  const tar = pack(site.directory, {
    ignore: path => relative(site.directory, path).split(sep).some(isHidden),
    map: header => ({ ...header, name: `site/${header.name}`, uid: 0, gid: 0, mode: header.type === 'directory' ? 0o755 : 0o644 }),
    finalize: false,
    finish: () => {
      tar.entry({ name: configFile, mode: 0o644 }, serverConfig({ hasFallback: fallback ?? false }))
      // The engine takes these two out of what COPY sees.
      tar.entry({ name: '.dockerignore', mode: 0o644 }, `${dockerfile}\n.dockerignore\n`)
      tar.entry({ name: dockerfile, mode: 0o644 }, text, () => tar.finalize())
    }
  })
  return Readable.from(tar)
}

const isHidden = (name: string): boolean => (name.startsWith('.') && name !== '.well-known') || name === 'node_modules'
