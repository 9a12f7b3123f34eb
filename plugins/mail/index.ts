import { definePlugin } from 'busbar/sdk'
import { jobs } from './jobs.js'
import { mailContributions, mailHealth, mailServices, needs, startMail } from './mail.js'
import { createMessage } from './migrations/001-create-message.js'
import { settings } from './settings.js'

export default definePlugin({
  id: 'mail',
  needs,
  config: settings,
  migrations: [createMessage],
  start: startMail,
  provides: mailServices,
  contributes: mailContributions,
  jobs,
  health: mailHealth
})
