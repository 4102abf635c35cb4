/// The expected timeline of the call in `AudioCallTests`.
enum AudioCallTimeline {
  /// Forty seconds with each fault once, and the user's actions between them; every line begins
  /// with its time in milliseconds.
  static let cycle = """
    30 audio-source-0-microphone: flowing -> starved
    30 sourceStarved {"source":0,"tag":"microphone"}
    200 sourceResumed {"source":0,"tag":"microphone","silentBlocks":18}
    200 audio-source-0-microphone: starved -> flowing
    2480 setEnabled {"isEnabled":false,"isInbound":false,"transceiver":1}
    2480 disabled {"transceiver":1,"direction":"out"}
    2720 mutedspeech {"phase":"began","transceiver":1}
    5000 interruptionBegan
    5000 audio-session: active -> inactive
    5000 audio-interruption: none -> interrupted
    5000 didBeginInterruption
    5000 operation {"operation":"stopUnit"}
    5000 audio-unit: started -> initialized
    5000 audio-recording: recording -> stopped
    5000 audio-playout: playing -> stopped
    5000 audio-source-0-microphone: flowing -> idle
    5000 sourceRefused {"source":0,"tag":"microphone","reason":"audioUnitInactive"}
    5480 interruptionEnded
    5480 audio-interruption: interrupted -> none
    5480 willSetActive {"active":true}
    5480 operation {"operation":"setActive","active":true}
    5480 audio-session: inactive -> active
    5480 didSetActive {"active":true}
    5480 didEndInterruption {"shouldResumeSession":true}
    5480 operation {"operation":"startUnit"}
    5480 audio-unit: initialized -> started
    5480 audio-recording: stopped -> recording
    5480 audio-playout: stopped -> playing
    5480 audio-source-0-microphone: idle -> flowing
    7460 setEnabled {"isEnabled":true,"isInbound":false,"transceiver":1}
    7460 mutedspeech {"phase":"ended","transceiver":1}
    7460 enabled {"transceiver":1,"direction":"out"}
    9980 pauseRecording
    9980 operation {"operation":"pauseRecording"}
    9980 audio-recording: recording -> paused
    9980 audio-source-0-microphone: flowing -> idle
    9980 sourceRefused {"source":0,"tag":"microphone","reason":"recordingPaused"}
    10460 resumeRecording
    10460 operation {"operation":"resumeRecording"}
    10460 audio-recording: paused -> recording
    10460 audio-source-0-microphone: idle -> flowing
    12440 setVolume {"transceiver":1,"volume":4.5}
    14960 routeChanged
    14960 audio-route: microphone (48000 Hz, 1 channel) and receiver (48000 Hz, 1 channel) -> \
    headset (16000 Hz, 1 channel) and headset (16000 Hz, 1 channel)
    14960 didChangeRoute {"reason":"newDeviceAvailable"}
    14960 operation {"operation":"stopUnit"}
    14960 sourceFormatChanged {"source":0,"tag":"microphone","from":"48000 Hz, 1 \
    channel","to":"16000 Hz, 1 channel","lostFrames":0}
    14960 audio-unit: started -> initialized
    14960 audio-recording: recording -> stopped
    14960 audio-playout: playing -> stopped
    14960 operation {"operation":"uninitializeUnit"}
    14960 audio-source-0-microphone: flowing -> idle
    14960 audio-unit: initialized -> uninitialized
    14960 operation {"operation":"initializeUnit","capture":"16000 Hz, 1 channel","render":"16000 \
    Hz, 1 channel"}
    14960 audio-unit: uninitialized -> initialized
    14960 operation {"operation":"startUnit"}
    14960 audio-unit: initialized -> started
    14960 audio-recording: stopped -> recording
    14960 audio-playout: stopped -> playing
    14960 audio-source-0-microphone: idle -> flowing
    15440 routeChanged
    15440 audio-route: headset (16000 Hz, 1 channel) and headset (16000 Hz, 1 channel) -> \
    microphone (48000 Hz, 1 channel) and receiver (48000 Hz, 1 channel)
    15440 didChangeRoute {"reason":"oldDeviceUnavailable"}
    15440 operation {"operation":"stopUnit"}
    15440 sourceFormatChanged {"source":0,"tag":"microphone","from":"16000 Hz, 1 \
    channel","to":"48000 Hz, 1 channel","lostFrames":148}
    15440 audio-unit: started -> initialized
    15440 audio-recording: recording -> stopped
    15440 audio-playout: playing -> stopped
    15440 operation {"operation":"uninitializeUnit"}
    15440 audio-source-0-microphone: flowing -> idle
    15440 audio-unit: initialized -> uninitialized
    15440 operation {"operation":"initializeUnit","capture":"48000 Hz, 1 channel","render":"48000 \
    Hz, 1 channel"}
    15440 audio-unit: uninitialized -> initialized
    15440 operation {"operation":"startUnit"}
    15440 audio-unit: initialized -> started
    15440 audio-recording: stopped -> recording
    15440 audio-playout: stopped -> playing
    15440 audio-source-0-microphone: idle -> flowing
    17420 setEnabled {"isEnabled":false,"isInbound":true,"transceiver":1}
    17420 disabled {"transceiver":1,"direction":"in"}
    19940 applyMode
    19940 audio-lock: unlocked -> locked
    19940 operation \
    {"operation":"setCategory","category":"playAndRecord","options":"allowBluetooth \
    allowBluetoothA2DP allowAirPlay"}
    19940 operation {"operation":"setMode","mode":"videoChat"}
    19940 audio-lock: locked -> unlocked
    19940 call refused: refused: the device refused setMode, code -50
    19940 applyMode
    19940 audio-lock: unlocked -> locked
    19940 operation \
    {"operation":"setCategory","category":"playAndRecord","options":"allowBluetooth \
    defaultToSpeaker allowBluetoothA2DP allowAirPlay"}
    19940 operation {"operation":"setMode","mode":"voiceChat"}
    19940 operation {"operation":"overridePort","port":"speaker"}
    19940 audio-lock: locked -> unlocked
    22400 setEnabled {"isEnabled":true,"isInbound":true,"transceiver":1}
    22400 enabled {"transceiver":1,"direction":"in"}
    24920 sourceRefused {"source":0,"tag":"microphone","reason":"formatMismatch"}
    24920 audio-route: microphone (48000 Hz, 1 channel) and receiver (48000 Hz, 1 channel) -> \
    microphone (8000 Hz, 1 channel) and receiver (48000 Hz, 1 channel)
    24920 didChangeRoute {"reason":"routeConfigurationChange"}
    24920 operation {"operation":"stopUnit"}
    24920 sourceFormatChanged {"source":0,"tag":"microphone","from":"48000 Hz, 1 \
    channel","to":"8000 Hz, 1 channel","lostFrames":0}
    24920 audio-unit: started -> initialized
    24920 audio-recording: recording -> stopped
    24920 audio-playout: playing -> stopped
    24920 operation {"operation":"uninitializeUnit"}
    24920 audio-source-0-microphone: flowing -> idle
    24920 audio-unit: initialized -> uninitialized
    24920 operation {"operation":"initializeUnit","capture":"8000 Hz, 1 channel","render":"48000 \
    Hz, 1 channel"}
    24920 audio-unit: uninitialized -> initialized
    24920 operation {"operation":"startUnit"}
    24920 audio-unit: initialized -> started
    24920 audio-recording: stopped -> recording
    24920 audio-playout: stopped -> playing
    24980 audio-source-0-microphone: idle -> flowing
    25400 routeChanged
    25400 audio-route: microphone (8000 Hz, 1 channel) and receiver (48000 Hz, 1 channel) -> \
    microphone (48000 Hz, 1 channel) and receiver (48000 Hz, 1 channel)
    25400 didChangeRoute {"reason":"oldDeviceUnavailable"}
    25400 operation {"operation":"stopUnit"}
    25400 sourceFormatChanged {"source":0,"tag":"microphone","from":"8000 Hz, 1 \
    channel","to":"48000 Hz, 1 channel","lostFrames":68}
    25400 audio-unit: started -> initialized
    25400 audio-recording: recording -> stopped
    25400 audio-playout: playing -> stopped
    25400 operation {"operation":"uninitializeUnit"}
    25400 audio-source-0-microphone: flowing -> idle
    25400 audio-unit: initialized -> uninitialized
    25400 operation {"operation":"initializeUnit","capture":"48000 Hz, 1 channel","render":"48000 \
    Hz, 1 channel"}
    25400 audio-unit: uninitialized -> initialized
    25400 operation {"operation":"startUnit"}
    25400 audio-unit: initialized -> started
    25400 audio-recording: stopped -> recording
    25400 audio-playout: stopped -> playing
    25400 audio-source-0-microphone: idle -> flowing
    27380 setVolume {"transceiver":1,"volume":0}
    29900 interruptionBegan
    29900 audio-session: active -> inactive
    29900 audio-interruption: none -> interrupted
    29900 didBeginInterruption
    29900 operation {"operation":"stopUnit"}
    29900 audio-unit: started -> initialized
    29900 audio-recording: recording -> stopped
    29900 audio-playout: playing -> stopped
    29900 audio-source-0-microphone: flowing -> idle
    29900 sourceRefused {"source":0,"tag":"microphone","reason":"audioUnitInactive"}
    30380 interruptionEnded
    30380 audio-interruption: interrupted -> none
    30380 willSetActive {"active":true}
    30380 operation {"operation":"setActive","active":true}
    30380 audio-session: inactive -> active
    30380 didSetActive {"active":true}
    30380 didEndInterruption {"shouldResumeSession":false}
    30380 operation {"operation":"startUnit"}
    30380 audio-unit: initialized -> started
    30380 audio-recording: stopped -> recording
    30380 audio-playout: stopped -> playing
    30380 audio-source-0-microphone: idle -> flowing
    32360 setVolume {"transceiver":1,"volume":10}
    34880 mediaServerTerminated
    34880 audio-server: running -> terminated
    34880 audio-session: active -> inactive
    34880 audio-unit: started -> uninitialized
    34880 audio-recording: recording -> stopped
    34880 audio-playout: playing -> stopped
    34880 mediaServerTerminated
    34880 audio-source-0-microphone: flowing -> idle
    34880 sourceRefused {"source":0,"tag":"microphone","reason":"audioUnitInactive"}
    35360 mediaServerReset
    35360 audio-server: terminated -> running
    35360 mediaServerReset
    35360 operation {"operation":"setIOType","type":"notSpecified"}
    35360 operation {"operation":"setProcessing","profile":"voice"}
    35360 operation {"operation":"setPreferredSampleRate","sampleRate":48000}
    35360 operation {"operation":"setPreferredIOBuffer","milliseconds":60}
    35360 operation {"operation":"setPreferredChannels","input":1,"output":1}
    35360 willSetActive {"active":true}
    35360 operation {"operation":"setActive","active":true}
    35360 audio-session: inactive -> active
    35360 didSetActive {"active":true}
    35360 operation {"operation":"initializeUnit","capture":"48000 Hz, 1 channel","render":"48000 \
    Hz, 1 channel"}
    35360 audio-unit: uninitialized -> initialized
    35360 operation {"operation":"startUnit"}
    35360 audio-unit: initialized -> started
    35360 audio-recording: stopped -> recording
    35360 audio-playout: stopped -> playing
    35360 audio-source-0-microphone: idle -> flowing
    37340 setVolume {"transceiver":1,"volume":1}
    """

  /// The entries that end the call.
  static let end = [
    #"120000 closeConnection"#,
    #"120000 audio-recording: recording -> stopped"#,
    #"120000 audio-playout: playing -> stopped"#,
    #"120000 didStopPlayOrRecord"#,
    #"120000 operation {"id":123,"operation":"stopUnit"}"#,
    #"120000 audio-source-0-microphone: flowing -> idle"#,
    #"120000 audio-unit: started -> initialized"#,
    #"120000 operation {"id":124,"operation":"uninitializeUnit"}"#,
    #"120000 audio-unit: initialized -> uninitialized"#,
    #"120000 willSetActive {"active":false}"#,
    #"120000 operation {"id":125,"operation":"setActive","active":false}"#,
    #"120000 audio-session: active -> inactive"#,
    #"120000 didSetActive {"active":false}"#,
    #"120000 readCounters"#,
  ]
}
