import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  updating: [
    409,
    'E_PLATFORM_UPDATING',
    'an update of the platform is under way already',
    'wait until it has ended'
  ],
  noRestart: [
    400,
    'E_SERVICE_RESTART',
    'service: {service} cannot be restarted here; these can: {possible}',
    { field: 'service' }
  ],
  noLogs: [
    400,
    'E_SERVICE_LOGS',
    'service: the log of {service} cannot be read here; these can: {possible}',
    { field: 'service' }
  ],
  partRefused: [
    502,
    'E_SERVICE_REFUSED',
    '{service}: {reason}',
    'look into the log of the platform, then try again'
  ]
})
