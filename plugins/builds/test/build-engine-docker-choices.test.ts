import { testBuildChoices } from './build-choice-cases.js'
import { engineKinds, openEngineLab } from './engine-lab.js'

const kind = engineKinds['the Docker Engine of this machine']
testBuildChoices(kind.image, async t => await openEngineLab(t, kind), { isClassic: false })
