import { definePlugin } from 'busbar/sdk'
import { applicationContributions, applicationServices, needs, startApplications } from './applications.js'
import { channels } from './channels.js'
import { singletons } from './jobs.js'
import { createApplications } from './migrations/001-create-applications.js'
import { addRegistryCredentials } from './migrations/002-add-registry-credentials.js'
import { addStartCommand } from './migrations/003-add-start-command.js'
import { addBuildChoices } from './migrations/004-add-build-choices.js'
import { addFailureTimes } from './migrations/005-add-failure-times.js'
import { notifications } from './notifications.js'
import { resources } from './resources.js'
import { routes } from './routes.js'

export default definePlugin({
  id: 'applications',
  needs,
  migrations: [createApplications, addRegistryCredentials, addStartCommand, addBuildChoices, addFailureTimes],
  start: startApplications,
  provides: applicationServices,
  contributes: applicationContributions,
  resources,
  notifications,
  routes,
  channels,
  singletons
})
