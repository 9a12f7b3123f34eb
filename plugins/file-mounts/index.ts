import { definePlugin } from 'busbar/sdk'
import { fileMountContributions, needs, startFileMounts } from './file-mounts.js'
import { createFileMounts } from './migrations/001-create-file-mounts.js'
import { resources } from './resources.js'
import { routes } from './routes.js'

export default definePlugin({
  id: 'file-mounts',
  needs,
  migrations: [createFileMounts],
  start: startFileMounts,
  contributes: fileMountContributions,
  resources,
  routes
})
