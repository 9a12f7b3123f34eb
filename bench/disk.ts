import pg from 'pg'
import { type Benchmark, count, mebibytes, type Row, ratioAtMost } from './benchmark.js'
import { docker, execute } from './rig/commands.js'
import { Deployer, removeProject } from './rig/deployer.js'
import { removeFolder, temporaryFolder } from './rig/leftovers.js'
import { openPlatform, type Platform } from './rig/platform.js'
import { Repository } from './rig/repository.js'

const deploys = 50
const half = deploys / 2
const mebibyte = 2 ** 20

interface Usage {
  readonly images: number
  readonly engineMib: number
  readonly directoryMib: number
  readonly databaseMib: number
}

/** What is left on the disk by one deploy after the other: it must level off. */
export const disk: Benchmark = {
  name: 'disk',
  title: `Disk after ${deploys} deploys that change a dependency; the reference is the disk after ${half}. It must level off`,
  async run() {
    const directory = await temporaryFolder()
    const repository = await Repository.create(directory)
    const platform = await openPlatform({ admins: 1 })
    const database = new pg.Client({ connectionString: platform.process.ready.databaseUrl })
    try {
      await database.connect()
      return await measure(repository, platform, database)
    } finally {
      await database.end()
      await removeProject(platform)
      await platform.close()
      await repository.close()
      await removeFolder(directory)
    }
  }
}

async function measure(repository: Repository, platform: Platform, database: pg.Client): Promise<Row[]> {
  const application = await Deployer.create(platform.admin, platform.projectId, repository.url)
  let dependencies = 0
  const run = async (times: number): Promise<Usage> => {
    for (let n = 0; n < times; n++) {
      await repository.commit(++dependencies)
      await repository.push()
      await application.finished(await application.start())
    }
    return await usageOf(platform, database)
  }
  const [reference, ours] = [await run(half), await run(half)]
  const row = (measure: string, key: keyof Usage, figure: typeof mebibytes, atMost: number): Row => ({
    measure,
    ours: figure(ours[key]),
    reference: figure(reference[key]),
    ratio: ours[key] / reference[key],
    goal: ratioAtMost(atMost)
  })
  return [
    row('images of the application', 'images', count, 1.05),
    row("all images of the engine (docker system df), other users' too", 'engineMib', mebibytes, 1.05),
    row('BUSBAR_DIR without the database', 'directoryMib', mebibytes, 1.05),
    row('database: its records stay by intent', 'databaseMib', mebibytes, 1.25)
  ]
}

async function usageOf({ directory, projectId }: Platform, database: pg.Client): Promise<Usage> {
  const images = await docker('image', 'ls', '--all', '--quiet', '--filter', `label=project-id=${projectId}`)
  const {
    rows: [{ size } = { size: 0 }]
  } = await database.query<{ size: number }>('select pg_database_size(current_database())::float8 as size')
  const { stdout } = await execute('du', ['--summarize', '--bytes', '--exclude=pg*', directory])
  return {
    images: new Set(images.split('\n').filter(id => id !== '')).size,
    engineMib: (await layersBytes()) / mebibyte,
    directoryMib: Number.parseInt(stdout, 10) / mebibyte,
    databaseMib: size / mebibyte
  }
}

/** As `docker system df` says it: layers that images share are counted once. */
async function layersBytes(): Promise<number> {
  const lines = (await docker('system', 'df', '--format', '{{.Type}} {{.Size}}')).split('\n')
  const [, amount = '0', unit = 'B'] =
    /^Images ([\d.]+)(\w+)/.exec(lines.find(line => line.startsWith('Images')) ?? '') ?? []
  return Number(amount) * 1000 ** Math.max(0, ['B', 'kB', 'MB', 'GB', 'TB'].indexOf(unit))
}
