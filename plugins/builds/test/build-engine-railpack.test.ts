import { engineKinds } from './engine-lab.js'
import { testRailpackInEngine } from './engine-railpack-cases.js'

testRailpackInEngine('the Docker Engine of this machine', engineKinds['the Docker Engine of this machine'])
