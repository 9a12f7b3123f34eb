import { testEngineOnFullDisk } from './engine-full-disk-cases.js'
import { engineKinds } from './engine-lab.js'

testEngineOnFullDisk('the Docker Engine of this machine', engineKinds['the Docker Engine of this machine'])
