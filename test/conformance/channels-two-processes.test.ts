/** What the channels carry, where one process deploys and another one is listened to. */
import { requireEngine } from '../../lab/engine.js'
import { channelClaims } from './channels.js'
import { testClaims, twoProcesses } from './claims.js'
import { databaseClaims } from './database-channels.js'

testClaims(
  [...channelClaims, ...databaseClaims],
  twoProcesses.slice(0, 1),
  { usesEngine: true },
  requireEngine
)
