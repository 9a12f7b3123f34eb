import { definePlugin } from 'busbar/sdk'
import { createProjects } from './migrations/001-create-projects.js'
import { createMembers } from './migrations/002-create-members.js'
import { notifications } from './notifications.js'
import { needs, projectContributions, projectServices, startProjects } from './projects.js'
import { resources } from './resources.js'
import { routes } from './routes.js'

export default definePlugin({
  id: 'projects',
  needs,
  migrations: [createProjects, createMembers],
  start: startProjects,
  provides: projectServices,
  contributes: projectContributions,
  resources,
  notifications,
  routes
})
