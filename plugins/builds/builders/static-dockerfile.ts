import {
  configFile,
  serverCommand,
  serverConfig,
  serverFolder,
  serverUser,
  siteFolder,
  sitePort
} from './static-server.js'
import type { Install } from './static-site.js'

interface ServerImage {
  readonly serverImage: string
}

/** Puts the site on top of the server's image. The context holds `site/` and the configuration. */
export const plainDockerfile = ({ serverImage }: ServerImage): string =>
  serving(serverImage, `COPY . ${serverFolder}/`)

const serving = (serverImage: string, copy: string): string => `FROM ${serverImage}
${copy}
USER ${serverUser}
EXPOSE ${sitePort}
STOPSIGNAL SIGQUIT
ENTRYPOINT []
CMD ${JSON.stringify(serverCommand)}
`

interface BuiltSite extends ServerImage {
  readonly buildImage: string
  readonly install: Install
  readonly folders: readonly string[]
  /** Null: as the site needs it, by whether it has a page for what is not found. */
  readonly hasFallback: boolean | null
  /** Names of variables that the build sees. */
  readonly variables: readonly string[]
}

/** What the build writes to its log when there is nothing to serve, before the names of what is there. */
export const nothingToServe = 'busbar: nothing to serve; found were: '

/** Builds the site with Node.js, then puts what came out on top of the server's image. */
export function builtDockerfile({
  serverImage,
  buildImage,
  install,
  folders,
  hasFallback,
  variables
}: BuiltSite): string {
  const early = variables.filter(isForInstallation)
  const late = variables.filter(name => !isForInstallation(name))
  const configs = { true: serverConfig({ hasFallback: true }), false: serverConfig({ hasFallback: false }) }
  const collect = [
    'node',
    '-e',
    collectScript,
    JSON.stringify({ folders, hasFallback, configs, siteFolder, serverFolder, configFile, nothingToServe })
  ]
  return [
    `FROM ${buildImage} AS busbar-build`,
    'WORKDIR /src',
    ...early.map(name => `ARG ${name}`),
    // What is installed does not depend on NODE_ENV and the like: with it, the tools of the build would be left out.
    ...(install.files.length === 0
      ? ['COPY . .', `RUN ${install.install}`]
      : [`COPY ${JSON.stringify([...install.files, './'])}`, `RUN ${install.install}`, 'COPY . .']),
    ...late.map(name => `ARG ${name}`),
    `RUN ${install.build}`,
    `RUN ${JSON.stringify(collect)}`,
    serving(serverImage, `COPY --from=busbar-build ${serverFolder} ${serverFolder}`)
  ].join('\n')
}

const isForInstallation = (name: string): boolean => /^(npm|yarn|pnpm|corepack)_/i.test(name)

/** Runs in the build's image, where the output is; without what is hidden. */
const collectScript = `
const fs = require('node:fs'), path = require('node:path')
const { folders, hasFallback, configs, siteFolder, serverFolder, configFile, nothingToServe } = JSON.parse(process.argv[1])
const folder = folders.find(name => fs.existsSync(path.join(name, 'index.html')))
if (folder === undefined) {
  const names = fs.readdirSync('.', { withFileTypes: true }).filter(entry => entry.name !== 'node_modules' && !entry.name.startsWith('.'))
  console.log(nothingToServe + names.map(entry => entry.isDirectory() ? entry.name + '/' : entry.name).sort().slice(0, 20).join(', '))
  process.exit(3)
}
console.log('busbar: serving ' + folder)
const isShown = name => name === '.well-known' || (!name.startsWith('.') && name !== 'node_modules')
fs.mkdirSync(serverFolder, { recursive: true })
fs.cpSync(folder, siteFolder, { recursive: true, filter: source => path.relative(folder, source).split(path.sep).every(name => name === '' || isShown(name)) })
const withFallback = hasFallback ?? !fs.existsSync(path.join(folder, '404.html'))
fs.writeFileSync(path.join(serverFolder, configFile), configs[withFallback])
fs.chmodSync(serverFolder, 0o755)
`.trim()
