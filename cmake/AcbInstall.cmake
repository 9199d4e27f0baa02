# What is installed beside the programs and plugins, whose targets install themselves: the manual and the
# sample configuration. Settings are a site's own, so nothing lands where Slurm or the daemon reads it.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1"
        FILES_MATCHING PATTERN "*.1")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/etc/slurm" "${PROJECT_SOURCE_DIR}/etc/autocloud-burst/"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/autocloud-burst")
install(FILES "${PROJECT_SOURCE_DIR}/etc/systemd/autocloudd.service" DESTINATION lib/systemd/system)
install(FILES "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md" TYPE DOC)
