import { definePlugin } from 'busbar/sdk'
import { buildContributions, buildServices, needs, startBuilds } from './builds.js'
import { singletons } from './jobs.js'
import { createCacheClearing } from './migrations/001-create-cache-clearing.js'
import { createLatestBuild } from './migrations/002-create-latest-build.js'
import { createPrivateImage } from './migrations/003-create-private-image.js'
import { createImageName } from './migrations/004-create-image-name.js'
import { createPrivatePull } from './migrations/005-create-private-pull.js'
import { createPrivateImageRepository } from './migrations/006-create-private-image-repository.js'
import { createPrivateLayer } from './migrations/007-create-private-layer.js'
import { createFetchedImage } from './migrations/008-create-fetched-image.js'
import { createImageFetch } from './migrations/009-create-image-fetch.js'
import { createImageClaim } from './migrations/010-create-image-claim.js'
import { createBuildEngine } from './migrations/011-create-build-engine.js'
import { keepStoppedEngines } from './migrations/012-keep-stopped-engines.js'
import { createDeployKey } from './migrations/013-create-deploy-key.js'
import { routes } from './routes.js'
import { settings } from './settings.js'

export default definePlugin({
  id: 'builds',
  needs,
  config: settings,
  migrations: [
    createCacheClearing,
    createLatestBuild,
    createPrivateImage,
    createImageName,
    createPrivatePull,
    createPrivateImageRepository,
    createPrivateLayer,
    createFetchedImage,
    createImageFetch,
    createImageClaim,
    createBuildEngine,
    keepStoppedEngines,
    createDeployKey
  ],
  start: startBuilds,
  provides: buildServices,
  contributes: buildContributions,
  routes,
  singletons
})
