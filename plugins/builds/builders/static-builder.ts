import { relative, sep } from 'node:path'
import { Readable } from 'node:stream'
import type { ImageInfo } from 'busbar/api/images'
import { isProblem, type Problem } from 'busbar/sdk'
import { pack as packFolder } from 'tar-fs'
import type { BuildContext, Builder, BuildRequest } from '../api.js'
import { chooseFiles, contextDockerfile, packFiles } from '../context/build-context.js'
import { problems } from '../problems.js'
import { buildChecked, readDockerfile } from './checked-build.js'
import { buildInEngineOrClassic, type EngineParts } from './engine-or-classic.js'
import { builtDockerfile, nothingToServe, plainDockerfile } from './static-dockerfile.js'
import { configFile, serverConfig } from './static-server.js'
import { findSite, type StaticSite } from './static-site.js'

interface StaticParts extends EngineParts {
  /** An image with nginx, that serves. */
  readonly serverImage: string
  /** An image with Node.js, that builds sites which need it. */
  readonly buildImage: string
}

/** What the Dockerfile is called that is made for a site. */
const name = 'Dockerfile.busbar-static'

/** Serves the files of the source, or what its build makes of them, from a small web server. */
export class StaticBuilder implements Builder {
  constructor(private readonly parts: StaticParts) {}

  async build(request: BuildRequest, context: BuildContext): Promise<ImageInfo> {
    const chosen = choices(request.variables)
    const site = await findSite(request.directory, chosen.directory)
    context.log({ level: 'info', msg: describe(site, this.parts) })
    const variables = site.kind === 'built' ? request.variables.filter(({ isSecret }) => !isSecret) : []
    if (site.kind === 'built') warnOfSecrets(request, context.log)
    const { applicationId, deploymentId, projectId, tag, noCache, limits = this.parts.usualLimits } = request
    const text = this.#dockerfile(
      site,
      chosen,
      variables.map(({ key }) => key)
    )
    const buildArgs = Object.fromEntries(variables.map(({ key, value }) => [key, value]))
    let found: string | undefined
    const heard: BuildContext = {
      ...context,
      log: line => {
        if (line.msg.startsWith(nothingToServe)) found = line.msg.slice(nothingToServe.length)
        context.log(line)
      }
    }
    try {
      const pack = await this.#packer(request.directory, site, chosen, context.signal)
      return await buildInEngineOrClassic(
        this.parts,
        request,
        {
          engine: async () => ({ name, text, context: pack, buildArgs, secrets: {} }),
          classic: async () =>
            await buildChecked(
              this.parts,
              {
                name,
                tag,
                owner: { projectId, applicationId, deploymentId },
                buildArgs,
                limits,
                noCache,
                dockerfile: readDockerfile(text, name),
                files: content => ({ context: pack(content), dockerfile: contextDockerfile })
              },
              { ...heard, onLine: line => heard.log({ level: 'info', stream: 'stdout', msg: line }) }
            )
        },
        heard
      )
    } catch (error) {
      if (!isProblem(error)) throw error
      if (isOfItsImages(error)) throw problems.staticImage({ reason: error.message })
      if (found === undefined || site.kind !== 'built') throw error
      throw problems.siteNotBuilt({
        command: site.install.build,
        folders: site.folders.join(', '),
        found: found === '' ? 'nothing' : found
      })
    }
  }

  /** Makes the build context, with the Dockerfile in it that the engine of the platform gets. */
  async #packer(
    directory: string,
    site: StaticSite,
    chosen: Choices,
    signal: AbortSignal
  ): Promise<(dockerfile?: string) => Readable> {
    if (site.kind === 'plain') return dockerfile => plainContext(site, chosen, dockerfile)
    const files = await chooseFiles(directory, name, signal)
    return dockerfile => packFiles(directory, files, dockerfile)
  }

  #dockerfile(site: StaticSite, { fallback }: Choices, variables: readonly string[]): string {
    const { serverImage, buildImage } = this.parts
    return site.kind === 'plain'
      ? plainDockerfile({ serverImage })
      : builtDockerfile({ ...site, serverImage, buildImage, hasFallback: fallback ?? null, variables })
  }
}

const isOfItsImages = ({ code }: Problem): boolean =>
  code === 'E_BUILD_BASE' || /^E_(REGISTRY|IMAGE)_/.test(code)

interface Choices {
  readonly directory?: string
  readonly fallback?: boolean
}

/** What the user says by variables of the application, because no field of it would. */
function choices(variables: BuildRequest['variables']): Choices {
  const value = (name: string): string | undefined => variables.find(({ key }) => key === name)?.value.trim()
  const fallback = value('STATIC_SPA')?.toLowerCase()
  if (fallback !== undefined && !['', 'true', 'false'].includes(fallback))
    throw problems.badChoice({ name: 'STATIC_SPA', value: fallback.slice(0, 100), allowed: 'true or false' })
  const directory = value('STATIC_DIRECTORY')
  return {
    ...(directory !== undefined && directory !== '' && { directory }),
    ...(fallback !== undefined && fallback !== '' && { fallback: fallback === 'true' })
  }
}

const describe = (site: StaticSite, { serverImage, buildImage }: StaticParts): string =>
  site.kind === 'plain'
    ? `Serving ${site.path === '' ? 'the root directory' : site.path} as it is, on ${serverImage}`
    : `Building with ${buildImage} (${site.install.install}; ${site.install.build}), serving on ${serverImage}`

function warnOfSecrets({ variables }: BuildRequest, log: BuildContext['log']): void {
  const names = variables.filter(({ isSecret }) => isSecret).map(({ key }) => key)
  if (names.length > 0)
    log({
      level: 'warning',
      msg: `The build does not see ${names.join(', ')}: secret variables could be read from what is served`
    })
}

/** The site and the server's configuration; nothing hidden, and no links that could lead elsewhere are followed. */
function plainContext(
  site: Extract<StaticSite, { kind: 'plain' }>,
  { fallback }: Choices,
  dockerfile?: string
): Readable {
  const tar = packFolder(site.directory, {
    ignore: path => relative(site.directory, path).split(sep).some(isHidden),
    map: header => ({
      ...header,
      name: `site/${header.name}`,
      uid: 0,
      gid: 0,
      mode: header.type === 'directory' ? 0o755 : 0o644
    }),
    finalize: false,
    finish: () => {
      tar.entry({ name: configFile, mode: 0o644 }, serverConfig({ hasFallback: fallback ?? false }))
      if (dockerfile !== undefined) {
        // The engine takes these two out of what COPY sees.
        tar.entry({ name: '.dockerignore', mode: 0o644 }, `${contextDockerfile}\n.dockerignore\n`)
        tar.entry({ name: contextDockerfile, mode: 0o644 }, dockerfile)
      }
      tar.finalize()
    }
  })
  return Readable.from(tar)
}

const isHidden = (name: string): boolean =>
  (name.startsWith('.') && name !== '.well-known') || name === 'node_modules'
