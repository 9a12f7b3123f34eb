/** What the channels carry, where one process acts and another one is listened to. */
import { requireEngine } from '../../lab/engine.js'
import { rotatingSample } from '../../scripts/rotating-sample.mjs'
import { channelClaims } from './channels.js'
import { testClaims, twoProcesses } from './claims.js'
import { databaseClaims } from './database-channels.js'

const placements = twoProcesses.slice(0, 2)
const chosen = rotatingSample(
  'which of two processes acts, and which is listened to',
  placements.map(({ name }) => name),
  { always: [], others: 1 }
)

testClaims(
  [...channelClaims, ...databaseClaims],
  placements.filter(({ name }) => chosen.has(name)),
  { usesEngine: true },
  requireEngine
)
