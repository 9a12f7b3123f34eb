import { testBuildpacksRefusedInEngine } from './engine-buildpacks-cases.js'
import { engineKinds } from './engine-lab.js'

testBuildpacksRefusedInEngine(
  'the Docker Engine of this machine',
  engineKinds['the Docker Engine of this machine']
)
