import { testBuildpacksInEngine } from './engine-buildpacks-cases.js'
import { engineKinds } from './engine-lab.js'

testBuildpacksInEngine('the Docker Engine of this machine', engineKinds['the Docker Engine of this machine'])
