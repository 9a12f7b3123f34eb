import { testCrashDuringBuild } from './engine-crash-cases.js'
import { testEngineOnFullDisk } from './engine-full-disk-cases.js'
import { testEngineImage } from './engine-image-cases.js'
import { testKilledEngine } from './engine-killed-cases.js'
import { engineKinds } from './engine-lab.js'
import { testRestartDuringHandOver } from './engine-restart-cases.js'

testKilledEngine('a newer Docker Engine', engineKinds['a newer Docker Engine'])
testCrashDuringBuild('a newer Docker Engine', engineKinds['a newer Docker Engine'])
testEngineOnFullDisk('a newer Docker Engine', engineKinds['a newer Docker Engine'])
testRestartDuringHandOver('a newer Docker Engine', engineKinds['a newer Docker Engine'])
testEngineImage('a newer Docker Engine', engineKinds['a newer Docker Engine'])
