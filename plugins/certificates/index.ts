import { definePlugin } from 'busbar/sdk'
import { certificateServices, needs, startCertificates } from './certificates.js'
import { schedules } from './jobs.js'
import { createCertificates } from './migrations/001-create-certificates.js'
import { notifications } from './notifications.js'
import { resources } from './resources.js'
import { routes } from './routes.js'

export default definePlugin({
  id: 'certificates',
  needs,
  migrations: [createCertificates],
  start: startCertificates,
  provides: certificateServices,
  resources,
  routes,
  schedules,
  notifications
})
