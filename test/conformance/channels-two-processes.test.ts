/** What the channels carry, where one process deploys and another one is listened to. */
import { requireEngine } from '../../lab/engine.js'
import { channelClaims } from './channels.js'
import { testClaims, twoProcesses } from './claims.js'

testClaims(channelClaims, twoProcesses.slice(0, 1), { usesEngine: true }, requireEngine)
