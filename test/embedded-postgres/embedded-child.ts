import { pino } from 'pino'
import { startEmbedded } from '../../embedded-postgres/index.js'

// A process with a database of its own, to be killed: prints the URL, then sleeps.
const [directory = ''] = process.argv.slice(2)
try {
  const { url } = await startEmbedded({ directory, log: pino({ level: 'silent' }), fsync: false })
  console.log(url)
  setInterval(() => {}, 1000)
} catch (error) {
  console.log(`error: ${error instanceof Error ? error.message : String(error)}`)
}
